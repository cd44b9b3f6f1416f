//! When a capture was taken, as the name of its file says it.
//!
//! People and scripts name captures `vios1-20260302-2215.txt`, `2026-03-02_22.15.00.log`, `20260302T221500Z`. A date with
//! four digits of year is looked for, and a time of day right behind it; a date alone is its midnight. Names give no zone, so
//! that only differences between names of one machine mean something.

/// Seconds since 1970 of the first date in a file's name.
pub(super) fn in_name(name: &str) -> Option<u64> {
    let bytes = name.as_bytes();
    (0..bytes.len())
        .filter(|&start| start == 0 || !bytes[start - 1].is_ascii_digit())
        .find_map(|start| Cursor { bytes, at: start }.date_and_time())
}

/// A place in a name.
#[derive(Clone, Copy)]
struct Cursor<'n> {
    bytes: &'n [u8],
    at: usize,
}

impl Cursor<'_> {
    fn date_and_time(mut self) -> Option<u64> {
        let year = self.digits(4)?;
        let divided = self.divider(b"-_.");
        let month = self.digits(2)?;
        if divided {
            self.divider(b"-_.").then_some(())?;
        }
        let day = self.digits(2)?;
        let days = days_since_1970(year, month, day)?;
        Some(days * 86_400 + self.time_of_day().unwrap_or(0))
    }

    /// The seconds of a time that begins here, perhaps behind a divider.
    fn time_of_day(mut self) -> Option<u64> {
        self.divider(b"-_.T ");
        let hour = self.digits(2)?;
        self.divider(b":.-_h");
        let minute = self.digits(2)?;
        let second = self.seconds().unwrap_or(0);
        let ends = self.bytes.get(self.at).is_none_or(|byte| !byte.is_ascii_digit());
        (ends && hour < 24 && minute < 60 && second < 60)
            .then_some(hour * 3600 + minute * 60 + second)
    }

    fn seconds(&mut self) -> Option<u64> {
        let mut ahead = *self;
        ahead.divider(b":.-_m");
        let second = ahead.digits(2)?;
        *self = ahead;
        Some(second)
    }

    /// Steps over one of these bytes, if one stands here.
    fn divider(&mut self, any: &[u8]) -> bool {
        let here = self.bytes.get(self.at).is_some_and(|byte| any.contains(byte));
        self.at += usize::from(here);
        here
    }

    fn digits(&mut self, count: usize) -> Option<u64> {
        let text = self.bytes.get(self.at..self.at + count)?;
        let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        let number = text.iter().map(digit).try_fold(0, |sum, digit| Some(sum * 10 + digit?))?;
        self.at += count;
        Some(number)
    }
}

/// Days from 1970-01-01 to a day of the Gregorian calendar, if there is such a day between 1990 and 2199.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let lengths = month_lengths(year);
    let before = usize::try_from(month.checked_sub(1)?).ok()?;
    let length = lengths.get(before)?;
    if !(1990..2200).contains(&year) || !(1..=*length).contains(&day) {
        return None;
    }
    let years: u64 = (1970..year).map(year_length).sum();
    Some(years + lengths[..before].iter().sum::<u64>() + day - 1)
}

/// A time as people write it, of the clock that it was read from: `2026-03-02 22:15:00`.
pub(super) fn shown(seconds: u64) -> String {
    let (year, month, day) = planner::report::date(seconds / 86_400);
    let rest = seconds % 86_400;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

fn month_lengths(year: u64) -> [u64; 12] {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

fn year_length(year: u64) -> u64 {
    month_lengths(year).iter().sum()
}

#[cfg(test)]
mod tests {
    use super::{in_name, shown};

    #[test]
    fn a_shown_time_is_the_one_that_its_name_says() {
        assert_eq!(shown(0), "1970-01-01 00:00:00");
        for day in (in_name("1996-01-01").unwrap()..in_name("2105-01-01").unwrap()).step_by(86_399)
        {
            assert_eq!(in_name(&shown(day)), Some(day));
        }
    }

    #[test]
    fn dates_and_times_as_people_write_them() {
        // `date -u -d 2026-03-02T22:15 +%s`
        let at = Some(1_772_489_700);
        for name in [
            "vios1-20260302-2215.txt",
            "vios1-20260302-221500.txt",
            "20260302T221500Z",
            "202603022215.log",
            "fcstat_2026-03-02_22.15.txt",
            "2026.03.02 22:15:00 fcstat",
            "a7-2026-03-02T22h15.txt",
        ] {
            assert_eq!(in_name(name), at, "{name}");
        }
        assert_eq!(in_name("x-20260302.txt"), Some(1_772_409_600));
        assert_eq!(in_name("20260302-part3.txt"), Some(1_772_409_600));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for name in [
            "1-0900.txt",
            "vios1.txt",
            "20261302.txt",
            "20260230.txt",
            "2026-0302",
            "78A1B30-120260302",
            "18991231",
            "",
            "2026",
            "日20",
        ] {
            assert_eq!(in_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_time_that_is_none_leaves_the_day() {
        assert_eq!(in_name("20260302-2599.txt"), Some(1_772_409_600));
        assert_eq!(in_name("20260302-22151.txt"), Some(1_772_409_600));
    }

    #[test]
    fn every_day_counts_one() {
        let mut last = in_name("1999-12-31").unwrap();
        for year in 2000..2101 {
            for (month, length) in
                [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].iter().enumerate()
            {
                for day in 1..=*length {
                    if let Some(at) = in_name(&format!("{year:04}{:02}{day:02}", month + 1)) {
                        assert_eq!(at, last + 86_400);
                        last = at;
                    } else {
                        assert_eq!((month, day), (1, 29), "only that day is ever missing");
                    }
                }
            }
        }
        // `date -u -d 2100-12-31 +%s`
        assert_eq!(last, 4_133_894_400);
    }
}
