//! Plots as SVG: lines over an axis, or bars. They have no script and no font of their own, and follow the reader's light or dark scheme.

use std::fmt::Write as _;

use crate::figure::short;

/// A plot.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) across: String,
    pub(crate) up: String,
    /// Steps across are powers of two.
    pub(crate) doubling: bool,
    pub(crate) lines: Vec<Line>,
}

/// What one contestant did; with one point a bar.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Room at the left, top, right and bottom of the axes.
const EDGE: [f64; 4] = [86.0, 44.0, 24.0, 84.0];
/// Told apart on white and on black, and by who cannot see colours with the shapes below.
const COLOURS: [&str; 4] = ["#2f81f7", "#d9822b", "#2da44e", "#bf5af2"];
const DASHES: [&str; 4] = ["none", "7 4", "2 4", "9 3 2 3"];

impl Chart {
    /// The file.
    pub(crate) fn svg(&self) -> String {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{}</title>\n<style>\n\
             :root {{ --ink: #1f2328; --rule: #d1d9e0; --paper: #ffffff }}\n\
             @media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6edf3; --rule: #3d444d; --paper: #0d1117 }} }}\n\
             text {{ fill: var(--ink) }} .rule {{ stroke: var(--rule) }} .paper {{ fill: var(--paper) }}\n</style>\n\
             <rect class=\"paper\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
             <text x=\"{}\" y=\"24\" font-size=\"16\" text-anchor=\"middle\">{}</text>\n",
            escaped(&self.title),
            WIDTH / 2.0,
            escaped(&self.title),
        );
        // Writing to a string cannot fail.
        let _ = if self.lines.iter().all(|line| line.points.len() < 2) {
            self.bars(&mut text)
        } else {
            self.curves(&mut text)
        };
        text + "</svg>\n"
    }

    fn highest(&self) -> f64 {
        let all = self.lines.iter().flat_map(|line| &line.points);
        all.map(|(_, y)| *y).fold(0.0, f64::max)
    }

    /// The axis up, with a rule at each step; gives its end.
    fn scale_up(&self, text: &mut String) -> Result<f64, std::fmt::Error> {
        let step = step(self.highest());
        let end = step * (self.highest() / step).ceil().max(1.0);
        let [left, top, right, bottom] = EDGE;
        let mut value = 0.0;
        while value <= end * 1.001 {
            let y = HEIGHT - bottom - (HEIGHT - top - bottom) * value / end;
            writeln!(
                text,
                "<line class=\"rule\" x1=\"{left}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - right,
                left - 8.0,
                y + 4.0,
                short(value)
            )?;
            value += step;
        }
        let middle = top + (HEIGHT - top - bottom) / 2.0;
        writeln!(
            text,
            "<text x=\"18\" y=\"{middle}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {middle})\">{}</text>",
            escaped(&self.up)
        )?;
        Ok(end)
    }

    fn bars(&self, text: &mut String) -> std::fmt::Result {
        let end = self.scale_up(text)?;
        let [left, top, right, bottom] = EDGE;
        let room = (WIDTH - left - right) / self.lines.len().max(1) as f64;
        for (at, line) in self.lines.iter().enumerate() {
            let Some((_, value)) = line.points.first() else { continue };
            let height = (HEIGHT - top - bottom) * value / end;
            let (x, y) = (left + room * (at as f64 + 0.2), HEIGHT - bottom - height);
            let middle = left + room * (at as f64 + 0.5);
            writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{}\"/>\
                 <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
                 <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                room * 0.6,
                COLOURS[at % COLOURS.len()],
                y - 6.0,
                short(*value),
                HEIGHT - bottom + 20.0,
                escaped(&line.label)
            )?;
        }
        Ok(())
    }

    fn curves(&self, text: &mut String) -> std::fmt::Result {
        let end = self.scale_up(text)?;
        let [left, top, right, bottom] = EDGE;
        let along = |x: f64| if self.doubling { x.max(f64::MIN_POSITIVE).log2() } else { x };
        let all = || self.lines.iter().flat_map(|line| &line.points).map(|(x, _)| *x);
        let least = if self.doubling { all().map(along).fold(f64::MAX, f64::min) } else { 0.0 };
        let most = all().map(along).fold(least, f64::max).max(least + f64::MIN_POSITIVE);
        let span = if most > least { most - least } else { 1.0 };
        let x_of = |x: f64| left + (WIDTH - left - right) * (along(x) - least) / span;
        let y_of = |y: f64| HEIGHT - bottom - (HEIGHT - top - bottom) * y / end;
        let mut steps: Vec<f64> = if self.doubling {
            all().collect()
        } else {
            let step = step(most);
            (0..=12).map(|at| step * f64::from(at)).filter(|x| *x <= most).collect()
        };
        steps.sort_by(f64::total_cmp);
        steps.dedup();
        for x in steps {
            writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                x_of(x),
                HEIGHT - bottom + 18.0,
                if self.doubling { format!("{x:.0}") } else { short(x) }
            )?;
        }
        writeln!(
            text,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            left + (WIDTH - left - right) / 2.0,
            HEIGHT - bottom + 40.0,
            escaped(&self.across)
        )?;
        for (at, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let points: Vec<String> = line
                .points
                .iter()
                .map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y)))
                .collect();
            writeln!(
                text,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" stroke-dasharray=\"{}\"/>",
                points.join(" "),
                DASHES[at % DASHES.len()]
            )?;
            for (x, y) in &line.points {
                let (x, y) = (x_of(*x), y_of(*y));
                writeln!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>")?;
            }
            let (x, y) = (left + (WIDTH - left - right) * at as f64 / 4.0, HEIGHT - 16.0);
            writeln!(
                text,
                "<line x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"2.5\" \
                 stroke-dasharray=\"{}\"/><text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                x + 28.0,
                y - 4.0,
                y - 4.0,
                DASHES[at % DASHES.len()],
                x + 34.0,
                escaped(&line.label)
            )?;
        }
        Ok(())
    }
}

/// 1, 2 or 5 times a power of ten, four to ten of which reach this far.
fn step(highest: f64) -> f64 {
    if highest.is_nan() || highest <= 0.0 {
        return 1.0;
    }
    let ten = 10_f64.powf((highest / 4.0).log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|by| by * ten).find(|step| highest / step >= 4.0).unwrap_or(ten)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (highest, wanted) in
            [(4.0, 1.0), (7.9, 1.0), (9.0, 2.0), (800_000.0, 200_000.0), (0.03, 0.005)]
        {
            assert!((step(highest) / wanted - 1.0).abs() < 1e-9, "{highest}: {}", step(highest));
        }
        assert_eq!(step(0.0).to_bits(), 1.0_f64.to_bits());
    }

    fn chart(points: &[(f64, f64)]) -> Chart {
        let line = |label: &str| Line { label: label.to_owned(), points: points.to_vec() };
        Chart {
            title: "a < b".to_owned(),
            across: "depth".to_owned(),
            up: "IOPS".to_owned(),
            doubling: true,
            lines: vec![line("single"), line("multi")],
        }
    }

    /// Every point is within the axes, whatever its size, and both schemes are there.
    #[test]
    fn points_are_within_the_plot() {
        for points in
            [&[(1.0, 5.0), (256.0, 0.0)][..], &[(1.0, 1e7), (2.0, 3.0)], &[(4.0, 2.0)], &[]]
        {
            let svg = chart(points).svg();
            assert!(
                svg.contains("prefers-color-scheme: dark") && svg.contains("a &lt; b"),
                "{svg}"
            );
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            for place in svg.split("<circle cx=\"").skip(1) {
                let x: f64 = place.split('"').next().unwrap().parse().unwrap();
                assert!((EDGE[0]..=WIDTH - EDGE[2]).contains(&x), "{svg}");
            }
        }
    }
}
