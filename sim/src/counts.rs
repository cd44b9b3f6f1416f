//! What runs went through.

use std::fmt;

macro_rules! counts {
    ($($(#[$about:meta])* $name:ident),+ $(,)?) => {
        /// What a run went through.
        #[derive(Debug, Default, Clone, Copy)]
        pub(crate) struct Counts { $($(#[$about])* pub $name: u64),+ }

        impl Counts {
            /// Adds another run's.
            pub(crate) fn add(&mut self, other: &Counts) { $(self.$name += other.$name;)+ }
        }
    };
}

counts! {
    /// Requests that were answered.
    answered,
    /// Those of them that failed.
    failed,
    /// Deaths of the process, those between two stores among them.
    deaths,
    /// Queues that moved to another channel.
    moves,
    /// Operations of the kernel.
    operations,
    /// Operations that were under way when their process died.
    orphans,
    /// Deaths of the whole host.
    power,
    /// Task management functions that were answered.
    functions,
    /// SCSI commands that ended early or failed.
    ended,
    /// Those that were refused.
    refused,
    /// Orders for reservations that were answered.
    orders,
    /// Clients that PREEMPT AND ABORT has shut out.
    shut,
    /// Logical units that were taken from a client, or given to it.
    maps,
    /// Sizes that a volume got.
    sizes,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { answered, failed, deaths, moves, operations, orphans, power, .. } = self;
        writeln!(
            f,
            "{answered} requests answered, {failed} of them with an error; {deaths} deaths with {orphans} operations under way, {power} of them of the host; {moves} moves; {operations} operations"
        )?;
        let Counts { functions, ended, refused, orders, shut, maps, sizes, .. } = self;
        write!(
            f,
            "of SCSI: {functions} functions answered, {ended} commands ended early, {refused} refused; {orders} orders for reservations, {shut} clients shut out; {maps} changes of LUN maps; {sizes} of sizes"
        )
    }
}
