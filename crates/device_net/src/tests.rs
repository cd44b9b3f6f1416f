use super::*;

mod pressure;
mod turns;

#[test]
fn each_reason_has_the_counter_of_its_word() {
    for reason in Reason::ALL {
        assert_eq!(counter_of(*reason).info().name, format!("drop_{}", reason.word()));
    }
}
