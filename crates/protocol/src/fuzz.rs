//! Fuzz target: the frames between the two processes.

use crate::message::{Reply, Request};
use crate::socket::{MESSAGE_BYTES_MAX, decode, encode};

/// Decodes arbitrary bytes as both kinds of message; what decodes must survive a round trip.
///
/// # Panics
///
/// When it does not.
pub fn fuzz_frame(data: &[u8]) {
    if let Ok(request) = decode::<Request>(data) {
        let frame = encode(&request, MESSAGE_BYTES_MAX).expect("what was received fits a frame");
        assert_eq!(decode::<Request>(&frame[4..]).expect("our own frame"), request);
    }
    if let Ok(reply) = decode::<Reply>(data) {
        let frame = encode(&reply, MESSAGE_BYTES_MAX).expect("what was received fits a frame");
        assert_eq!(decode::<Reply>(&frame[4..]).expect("our own frame"), reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spoilt_messages_do_no_harm() {
        let spec = crate::message::VolumeSpec {
            bytes: Some(1 << 30),
            delay: Some(crate::message::DelaySpec::default()),
            ..crate::message::VolumeSpec::new("v", crate::message::NullSpec { zero_fill: true })
        };
        let good = encode(&Request::PutVolume(spec), MESSAGE_BYTES_MAX).unwrap().split_off(4);
        for at in 0..good.len() {
            for byte in [0, 0x5f, 0x7f, 0x9f, 0xbf, 0xff, good[at] ^ 1] {
                let mut spoilt = good.clone();
                spoilt[at] = byte;
                fuzz_frame(&spoilt);
                fuzz_frame(&spoilt[..at]);
            }
        }
    }
}
