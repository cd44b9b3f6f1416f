//! What a port is bounded by: from what was asked for to what its channels share.

use spec::{RateSpec, StormSpec};
use switch::{Limit, Meter, Rate, Storm};

/// The bounds of a port. They are made anew where they change and kept where they do not: neither another change nor a client that connects again brings more than
/// the rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    asked: Asked,
    pub(crate) limit_in: Option<Limit>,
    pub(crate) limit_out: Option<Limit>,
    pub(crate) storm: Storm,
}

/// What a port may send and gets, and what it may send to many.
pub(crate) type Asked = (RateSpec, RateSpec, StormSpec);

impl Bounds {
    /// As is asked for now.
    pub(crate) fn kept(&mut self, asked: Asked) -> Bounds {
        let (before, (tx, rx, storm)) = (std::mem::replace(&mut self.asked, asked), asked);
        if before.0 != tx {
            self.limit_in = limit(&tx);
        }
        if before.1 != rx {
            self.limit_out = limit(&rx);
        }
        if before.2 != storm {
            // What may come in a second may come at once.
            let meter = |number| rate(number, number).map(Meter::new);
            self.storm = Storm {
                broadcast: meter(storm.broadcast),
                multicast: meter(storm.multicast),
                unknown: meter(storm.unknown),
            };
        }
        self.clone()
    }
}

fn rate(per_second: u64, burst: u64) -> Option<Rate> {
    (per_second > 0).then_some(Rate { per_second, burst })
}

fn limit(spec: &RateSpec) -> Option<Limit> {
    let frames = rate(spec.frames_per_s, spec.frames_burst);
    Limit::new(frames, rate(spec.bytes_per_s, spec.bytes_burst))
}
