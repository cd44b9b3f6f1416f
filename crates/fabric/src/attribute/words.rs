//! Words that attributes take, as enums.

use super::typed::{Shape, Typed};
use super::{Attribute, Value};
use crate::negotiate::Policy;
use crate::sea::HaMode;

/// An enum and its words; one that is there already gets its words.
macro_rules! words {
    ($(#[$doc:meta])* enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$about])* $variant,)* }
        words!($name { $($variant = $word,)* });
    };
    ($name:ident { $($variant:ident = $word:literal,)* }) => {
        impl $name {
            /// All words.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl Typed for $name {
            type Out<'a> = $name;
            const SHAPE: Shape = Shape::Word;

            fn read(value: &Value) -> Option<$name> {
                let word = value.as_text()?;
                [$($name::$variant),*].into_iter().find(|one| one.word() == word)
            }

            fn default(_: &'static Attribute, text: &str) -> Option<$name> {
                [$($name::$variant),*].into_iter().find(|one| one.word() == text)
            }

            fn write(value: $name) -> Value {
                Value::Text(value.word().to_owned())
            }
        }
    };
}

words! {
    /// What holds the data of a volume.
    enum VolumeKind {
        /// A file or a block device.
        File = "file",
        /// Memory.
        Ram = "ram",
        /// Nothing.
        Null = "null",
        /// A storage pool.
        Lu = "lu",
    }
}

words! {
    /// What becomes of writes that need space in a pool that has none.
    enum OnFull {
        /// They wait for it.
        Pause = "pause",
        /// They fail.
        Error = "error",
    }
}

words! {
    /// How the file of a volume is accessed.
    enum Cache {
        /// Past the page cache where that can be.
        Auto = "auto",
        /// Past the page cache.
        Direct = "direct",
        /// Through the page cache.
        Buffered = "buffered",
    }
}

words! {
    /// How SCSI reservations are answered.
    enum Reservations {
        /// They hold between the clients of this server.
        Local = "local",
        /// Not at all.
        Refuse = "refuse",
    }
}

words! {
    /// What an adapter shows its client.
    enum AdapterKind {
        /// One disk.
        Block = "block",
        /// Virtual Fibre Channel.
        Fc = "fc",
        /// Virtual SCSI.
        Scsi = "scsi",
        /// Virtual Ethernet.
        Ethernet = "ethernet",
    }
}

words! {
    /// How channels wait.
    enum Wait {
        /// They spin.
        Poll = "poll",
        /// They spin only while that pays.
        Adaptive = "adaptive",
        /// They sleep.
        Interrupt = "interrupt",
    }
}

words! {
    /// On which channels queues are.
    enum Placement {
        /// On few where there is little to do.
        Adaptive = "adaptive",
        /// Apart.
        Spread = "spread",
    }
}

words! {
    /// Who an adapter is at its socket.
    enum SocketRole {
        /// It listens.
        Server = "server",
        /// It connects.
        Client = "client",
    }
}

words! {
    /// What a virtual target device is.
    enum VtdKind {
        /// A disk on a volume.
        Disk = "disk",
        /// An optical drive.
        Optical = "optical",
    }
}

words! {
    /// What the interface of the host is to an uplink.
    enum UplinkKind {
        /// A TAP, behind which is the host.
        Tap = "tap",
        /// One that is there, by packet sockets.
        Packet = "packet",
        /// One that is there, by AF_XDP sockets.
        Xdp = "xdp",
    }
}

words! {
    /// Which member of an aggregated uplink frames take.
    enum Aggregation {
        /// The first one that is up.
        ActiveBackup = "active-backup",
        /// All frames of a flow the same of those that are up.
        Hash = "hash",
    }
}

words! {
    /// Which tags say the VLAN of frames.
    enum Tagging {
        /// Customers' tags.
        Dot1q = "dot1q",
        /// Service tags.
        Dot1ad = "dot1ad",
        /// None.
        Tunnel = "tunnel",
    }
}

words! {
    /// Whether frames are counted by client.
    enum Accounting {
        /// They are not.
        Disabled = "disabled",
        /// They are.
        Enabled = "enabled",
    }
}

words! {
    /// Whether a port has a link.
    enum Link {
        /// It has.
        Up = "up",
        /// It was taken down.
        Down = "down",
    }
}

words!(HaMode {
    Disabled = "disabled",
    Auto = "auto",
    Standby = "standby",
    Sharing = "sharing",
});
words!(Policy { Linux = "linux", Aix = "aix", });
