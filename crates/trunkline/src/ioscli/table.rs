//! The commands: how each is typed, and its help.

use super::words::Takes::{Many, Maybe, Nothing, One};
use super::words::{Flag, Syntax, flag};
use super::{Command, act, show};

const FMT: Flag = flag("-fmt", One, "DELIMITER", "one line each, with this between the fields");
const PERM: &str = "also what takes effect later; see below";

/// Every command.
pub(super) static COMMANDS: &[Command] = &[
    Command { syntax: FCSTAT, run: show::fcstat },
    Command { syntax: CAT, run: show::cat },
    Command { syntax: LSMAP, run: show::lsmap },
    Command { syntax: LSDEV, run: show::lsdev },
    Command { syntax: LSATTR, run: show::lsattr },
    Command { syntax: CHDEV, run: act::chdev },
];

const FCSTAT: Syntax = Syntax {
    name: "fcstat",
    about: "statistics of an adapter",
    usage: &["[-e | -D] [-d] [-z] DEVICE", "-l DURATION [INTERVAL] DEVICE"],
    flags: &[
        flag("-e", Nothing, "", "also the driver's statistics and how full its queues are"),
        flag("-D", Nothing, "", "the same"),
        flag("-d", Nothing, "", "taken, and changes nothing: there is no diagnostic mode"),
        flag("-z", Nothing, "", "reset the counters, then print"),
        flag("-l", One, "DURATION", "watch for so many seconds where the time of commands goes"),
    ],
    plain: 2,
    notes: "\
No DMA Resource Count counts waits for memory, No Adapter Elements Count waits for the volume's file or device, and \
No Command Resource Count waits because num_cmd_elems commands were active. There are no frames and no link, so \
these counters are 0.

-z changes no counter: it keeps a copy in fcstat-reset.json in the server's state folder, and later reports say what \
came since. Others see the counters as before. High-water marks stay.

-l shows, for each INTERVAL seconds, how long commands were in the ring between client and server, in the server, and in the volume; percentiles are at most 12.5 % too high. Reads and writes are not told apart, and the time within the client cannot be seen from here.
",
};

const CAT: Syntax = Syntax {
    name: "cat",
    about: "the statistics file of an adapter, with the commands of each queue",
    usage: &["/proc/sys/adapter/vfc/ADAPTER/stats", "ADAPTER/stats"],
    flags: &[],
    plain: 1,
    notes: "\
CMD queues are the control and event queue of a SCSI adapter, counted as one; SUBQ channels are the queues on which \
its client sends I/O. `trunkline stats ADAPTER` has the same and more.
",
};

const LSMAP: Syntax = Syntax {
    name: "lsmap",
    about: "which adapter gives its client what",
    usage: &["-all [-fmt DELIMITER] [-field NAME …]", "-vadapter ADAPTER"],
    flags: &[
        flag("-all", Nothing, "", "every adapter"),
        flag("-vadapter", One, "ADAPTER", "this one"),
        flag("-dec", Nothing, "", "the client's number in decimal"),
        FMT,
        flag("-field", Many, "NAME", "only these fields"),
    ],
    plain: 0,
    notes: "\
A block adapter is shown as a virtual SCSI adapter with one virtual target device, its volume. A client does not say \
who it is: its partition ID is the number in the adapter's name plus one while it is connected, and 0 else.
",
};

const LSDEV: Syntax = Syntax {
    name: "lsdev",
    about: "devices, and the attributes of one",
    usage: &[
        "[-virtual | -type adapter | -type disk]",
        "-dev DEVICE",
        "-dev DEVICE -attr [NAME]",
        "-dev DEVICE -range NAME",
    ],
    flags: &[
        flag("-virtual", Nothing, "", "only what clients use"),
        flag("-type", One, "TYPE", "only these: adapter, disk"),
        flag("-dev", One, "DEVICE", "this one"),
        flag("-attr", Maybe, "NAME", "its attributes, or the value of one"),
        flag("-range", Maybe, "NAME", "the values that the attribute may have"),
    ],
    plain: 0,
    notes: DEVICES,
};

const LSATTR: Syntax = Syntax {
    name: "lsattr",
    about: "attributes of a device, as AIX prints them",
    usage: &["-El DEVICE [-a NAME …]", "-Rl DEVICE -a NAME"],
    flags: &[
        flag("-E", Nothing, "", "the values that hold"),
        flag("-R", Nothing, "", "the values that an attribute may have"),
        flag("-H", Nothing, "", "with a heading"),
        flag("-l", One, "DEVICE", "the device"),
        flag("-a", Many, "NAME", "only these"),
    ],
    plain: 0,
    notes: DEVICES,
};

const CHDEV: Syntax = Syntax {
    name: "chdev",
    about: "change attributes of a device",
    usage: &["-dev DEVICE -attr NAME=VALUE … [-perm]", "-l DEVICE -a NAME=VALUE … [-P]"],
    flags: &[
        flag("-dev", One, "DEVICE", "the device"),
        flag("-attr", Many, "NAME=VALUE", "what to change; NAME= puts the default back"),
        flag("-perm", Nothing, "", PERM),
        flag("-l", One, "DEVICE", "as -dev"),
        flag("-a", Many, "NAME=VALUE", "as -attr"),
        flag("-P", Nothing, "", "as -perm"),
    ],
    plain: 0,
    notes: "\
Every change is kept. In the original -perm changes only what the next start of the device reads, because most \
attributes cannot change while it is in use. Here most can: those that `lsattr` marks True+ change at once, with and \
without -perm. The others wait for the client's next connect or the next start of the data plane; without -perm \
such a change is refused as long as the device is in use, with -perm it is kept until then.
",
};

const DEVICES: &str = "\
Devices are adapters, volumes and data planes. viosnpiv0 is the data plane `main` with its attributes for NPIV. \
True+ marks what can change while in use, True what waits for the client's next connect or a start of the data plane, \
False what is fixed.
";
