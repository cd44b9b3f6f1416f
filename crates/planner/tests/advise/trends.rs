//! Courses over a change: which captures are before it and which after.

use super::{Port, SHORT, lsattr, timed};
use planner::facts::Facts;
use planner::report::html::html;
use planner::report::trends::{Effected, Trend, Trends, trends};
use planner::report::{Answer as _, Block};

/// Eight captures of a port and a disk, every ten minutes; the fifth is the first after the change.
fn course() -> Trends {
    course_with([1.9, 1.1])
}

/// The same with a service time before and after the change.
fn course_with(services: [f64; 2]) -> Trends {
    let waits = [0, 6000, 12_000, 18_000, 21_000, 21_000, 21_000, 21_000];
    let one = |at: usize| {
        let passed = 600 * u64::try_from(at).unwrap();
        let (elements, depth, service) =
            if at < 4 { ("200", "4", services[0]) } else { ("2048", "20", services[1]) };
        let text = Port { no_command: waits[at], ..SHORT.later(passed, 100 * passed) }.text()
            + &lsattr("payroll", "fcs0", &[("num_cmd_elems", elements)])
            + &lsattr("payroll", "hdisk4", &[("queue_depth", depth)])
            + &format!(
                "payroll:/> iostat -D\n\nSystem configuration: lcpu=8 drives=1 paths=2 vdisks=0\n\n\
                 hdisk4         xfer:  %tm_act      bps      tps      bread      bwrtn\n\
                 \x20                         40.0    20.5M   2500.0    16.4M       4.1M\n\
                 \x20              read:      rps  avgserv  minserv  maxserv   timeouts      fails\n\
                 \x20                       2000.0     {service:.1}      0.2     90.0           0          0\n"
            );
        (format!("{at}.txt"), text, passed)
    };
    let files: Vec<(String, String, u64)> = (0..waits.len()).map(one).collect();
    let files: Vec<(&str, &str, u64)> =
        files.iter().map(|(name, text, at)| (name.as_str(), text.as_str(), *at)).collect();
    trends(&timed(&files), &Facts::builtin())
}

fn of<'a>(trends: &'a Trends, name: &str) -> &'a Trend {
    let mut all = trends.things.iter().flat_map(|thing| &thing.counters);
    all.find(|trend| trend.name == name).expect("a course")
}

#[test]
fn a_value_captured_with_the_new_attribute_is_after_the_change() {
    let course = course();
    let service = of(&course, "hdisk4 read service");
    let near = |mean: Option<f64>, is: f64| mean.is_some_and(|mean| (mean - is).abs() < 1e-9);
    assert!(near(service.before, 1.9) && near(service.after, 1.1), "{service:?}");
}

#[test]
fn an_interval_with_the_change_in_it_is_neither_before_nor_after() {
    let course = course();
    let waits = of(&course, "no_command");
    assert_eq!((waits.before, waits.after), (Some(10.0), Some(0.0)), "{waits:?}");
}

#[test]
fn the_mark_of_a_change_at_the_end_is_written_to_its_left() {
    let page = html(&course());
    let label = |text: &str| {
        let end = page.find(text).expect(text);
        let start = page[..end].rfind("<text").expect("its text");
        page[start..end].to_owned()
    };
    assert!(label("queue_depth=20").contains(r#"text-anchor="end""#));
}

/// The change is told in minutes since the first capture; the axis of rates, which begin with the second, has the same.
#[test]
fn the_axis_of_rates_begins_where_the_second_capture_is() {
    let page = html(&course());
    assert!(page.contains("+40 min"), "the change");
    let ends = |text: &str| page.contains(&format!(">{text}</text>"));
    assert!(ends("+10 min") && ends("+70 min"));
    assert!(!ends("+60 min"));
}

/// A value that is printed with one digit can differ by one of it without having changed.
#[test]
fn a_step_of_the_last_digit_is_noise() {
    for (services, verdict) in [
        ([0.9, 0.8], Effected::Noise),
        ([0.8, 0.9], Effected::Noise),
        ([1.9, 1.1], Effected::Better),
        ([1.1, 1.9], Effected::Worse),
    ] {
        let course = course_with(services);
        let effect = of(&course, "hdisk4 read service").effect.expect("both sides");
        assert_eq!(effect.verdict, verdict, "{services:?}: {effect:?}");
        assert_eq!(effect.noise, Some(0.1), "{effect:?}");
    }
}

/// Counters that stayed at nothing and values that never changed take no room.
#[test]
fn what_never_changed_is_not_drawn() {
    let trends = course();
    let port = trends.things.iter().find(|thing| thing.name.starts_with("fcstat")).expect("a port");
    let still = |trend: &Trend| trend.points.iter().all(|point| point.value == 0.0);
    assert!(!port.counters.is_empty());
    assert!(port.counters.iter().filter(|trend| still(trend)).all(|trend| !trend.notes.is_empty()));
    let sections = trends.sections();
    let charts =
        sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Chart(planner::report::Chart::Line(line)) => Some(line),
            _ => None,
        });
    for line in charts {
        let values = line.series.iter().flat_map(|one| &one.points).map(|point| point.value);
        let least = values.clone().fold(f64::INFINITY, f64::min);
        assert!(line.limit.is_some() || values.into_iter().any(|value| value > least), "{line:?}");
    }
}

/// A reset is told once, not by each counter that stayed at nothing.
#[test]
fn a_reset_is_told_once_by_counters_that_stayed_at_nothing() {
    let files: Vec<(String, String, u64)> = (0..6_u64)
        .map(|at| {
            let passed = 600 * at;
            let since = if at < 3 { passed } else { passed - 1700 };
            let text = Port { no_command: 0, ..SHORT.later(since, 100 * since) }.text();
            (format!("{at}.txt"), text, passed)
        })
        .collect();
    let files: Vec<(&str, &str, u64)> =
        files.iter().map(|(name, text, at)| (name.as_str(), text.as_str(), *at)).collect();
    let trends = trends(&timed(&files), &Facts::builtin());
    let still = |trend: &&Trend| trend.points.iter().all(|point| point.value == 0.0);
    let counters = || trends.things.iter().flat_map(|thing| &thing.counters);
    assert!(counters().any(|trend| trend.notes.iter().any(|note| note.contains("reset"))));
    assert!(counters().filter(still).count() <= 1, "{:?}", trends.things);
}
