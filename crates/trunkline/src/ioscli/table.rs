//! The commands: how each is typed, and its help.

use super::words::Takes::{Many, Maybe, Nothing, One};
use super::words::{Flag, Syntax, flag};
use super::{Command, act, errlog, iostat, media, sea, seastat, show, ssp};

pub(super) const FMT: Flag =
    flag("-fmt", One, "DELIMITER", "one line each, with this between the fields");
const PERM: &str = "also what takes effect later; see below";

/// Every command.
pub(super) static COMMANDS: &[Command] = &[
    Command { syntax: FCSTAT, run: show::fcstat },
    Command { syntax: ENTSTAT, run: sea::entstat },
    Command { syntax: seastat::SEASTAT, run: sea::seastat },
    Command { syntax: IOSTAT, run: iostat::run },
    Command { syntax: VIOSTAT, run: iostat::run },
    Command { syntax: CAT, run: show::cat },
    Command { syntax: HOSTINFO, run: show::hostinfo },
    Command { syntax: ERRLOG, run: errlog::run },
    Command { syntax: LSMAP, run: show::lsmap },
    Command { syntax: LSNPORTS, run: show::lsnports },
    Command { syntax: VFCMAP, run: act::vfcmap },
    Command { syntax: LSDEV, run: show::lsdev },
    Command { syntax: LSATTR, run: show::lsattr },
    Command { syntax: CHDEV, run: act::chdev },
    Command { syntax: RMDEV, run: act::rmdev },
    Command { syntax: CFGDEV, run: act::cfgdev },
    Command { syntax: MKVDEV, run: media::mkvdev },
    Command { syntax: RMVDEV, run: media::rmvdev },
    Command { syntax: MKREP, run: media::mkrep },
    Command { syntax: LSREP, run: media::lsrep },
    Command { syntax: MKVOPT, run: media::mkvopt },
    Command { syntax: RMVOPT, run: media::rmvopt },
    Command { syntax: LSVOPT, run: media::lsvopt },
    Command { syntax: LOADOPT, run: media::loadopt },
    Command { syntax: UNLOADOPT, run: media::unloadopt },
    Command { syntax: LSSP, run: ssp::lssp },
    Command { syntax: LU, run: ssp::lu },
    Command { syntax: PV, run: ssp::pv },
    Command { syntax: TIER, run: ssp::tier },
    Command { syntax: FAILGRP, run: ssp::failgrp },
    Command { syntax: CLUSTER, run: ssp::cluster },
    Command { syntax: ssp::ALERT, run: ssp::alert },
    Command { syntax: SNAPSHOT, run: ssp::snapshot },
];

const FCSTAT: Syntax = Syntax {
    name: "fcstat",
    about: "statistics of a port, an adapter, or every client",
    usage: &[
        "[-e | -D] [-d] [-z] DEVICE",
        "-n WWPN [-z] PORT",
        "-client",
        "-l DURATION [INTERVAL] DEVICE",
    ],
    flags: &[
        flag("-e", Nothing, "", "also the driver's statistics and how full its queues are"),
        flag("-D", Nothing, "", "the same"),
        flag("-d", Nothing, "", "taken, and changes nothing: there is no diagnostic mode"),
        flag("-z", Nothing, "", "reset the counters, then print"),
        flag("-n", One, "WWPN", "of the adapter on PORT that has this name"),
        flag("-client", Nothing, "", "a row for each port, and below it one for each adapter on it"),
        flag("-l", One, "DURATION", "watch for so many seconds where the time of commands goes"),
    ],
    plain: 2,
    notes: "\
DEVICE is a port, with the sum of the adapters on it, or one adapter.

No DMA Resource Count counts waits for memory, No Adapter Elements Count waits because the num_cmd_elems of the port were lent, and \
No Command Resource Count waits because num_cmd_elems commands of the adapter were active. Pending commands of the protocol driver wait for \
one of these elements; those of the adapter driver have one and wait in the server. There are no frames and no pools, so these \
counters are 0.

-z changes no counter: it keeps a copy in fcstat-reset.json in the server's state folder, and later reports say what \
came since. Others see the counters as before. High-water marks stay.

-l shows, for each INTERVAL seconds, how long commands were in the ring between client and server, in the server, and in the volume; percentiles are at most 12.5 % too high. Reads and writes have their mean times, in all and for each LUN; the time in the ring is that of all commands of the adapter, and percentiles are known of both together. The time within the client cannot be seen from here.
",
};

const IO_FIELDS: &str = "\
DEVICE is an adapter, or a LUN that its client sees, as vfchost0/0/1 for target 0 and LUN 1; without one, all adapters that have had a client. Of adapters with LUNs -lun has a report for each LUN instead. Without INTERVAL there is one report of all time since the data plane began. With it, a report comes \
every INTERVAL seconds, COUNT of them or until it is stopped: the first is of all time, the others of the interval.

read and write: rps and wps are completed requests per second; avgserv, minserv and maxserv are the times that these spent with the volume, in milliseconds: the mean of the interval, and the shortest and longest since \
the data plane began or `trunkline adapter reset-marks`. fails were answered with an error or aborted, in the interval. timeouts are 0: the server gives up on no request; what a client gives up on, it aborts.

queue: avgtime, mintime and maxtime are the times in the server, waits included (maxtime is at most 12.5 % too high); avgwqsz is how many requests were in the server at once on average, avgsqsz how many were with the \
volume, sqfull how often per second one found no command element or no room in the back end (counted for the adapter: 0 of a LUN). %tm_act is the sum of all these times by the interval, at most 100. It and the figures of the queue are of all commands. Volumes that answer at once (ram, null) have no time with the volume, and what failed there is not told apart by read and write.
";

const LUNS: &str = "each LUN apart, of adapters that have any";

const IOSTAT: Syntax = Syntax {
    name: "iostat",
    about: "how each adapter was served, reads and writes apart, as AIX prints disks",
    usage: &["-D [-lun] [DEVICE …] [INTERVAL [COUNT]]"],
    flags: &[
        flag("-D", Nothing, "", "the extended report, which is the only one here"),
        flag("-lun", Nothing, "", LUNS),
    ],
    plain: 1024,
    notes: IO_FIELDS,
};

const VIOSTAT: Syntax = Syntax {
    name: "viostat",
    about: "the same as iostat, with the flag of the Virtual I/O Server",
    usage: &["-extdisk [-lun] [DEVICE …] [INTERVAL [COUNT]]"],
    flags: &[
        flag("-extdisk", Nothing, "", "the extended report, which is the only one here"),
        flag("-lun", Nothing, "", LUNS),
    ],
    plain: 1024,
    notes: IO_FIELDS,
};

const ENTSTAT: Syntax = Syntax {
    name: "entstat",
    about: "statistics of an Ethernet adapter, or of a shared one with all below it",
    usage: &["[-all | -d] DEVICE"],
    flags: &[
        flag("-all", Nothing, "", "also what only this kind of adapter has"),
        flag("-d", Nothing, "", "the same"),
    ],
    plain: 1,
    notes: "\
DEVICE is a shared Ethernet adapter, its uplink (the real adapter), or a virtual Ethernet adapter. A shared adapter counts what its uplink does: received on the real side \
is what came from outside, received on the virtual side what went there. Dropped are frames in both directions; `trunkline stats UPLINK` has them by reason. What a trunk \
adapter has sent to its clients, and received from them, is counted where `accounting` of the shared adapter is enabled, from then on. An uplink of several members is shown with each of them.
",
};

const HOSTINFO: Syntax = Syntax {
    name: "hostinfo",
    about: "who serves a virtual Fibre Channel adapter, as AIX tells the client",
    usage: &["ADAPTER"],
    flags: &[],
    plain: 1,
    notes: "\
On AIX this is the file /proc/sys/adapter/fc/fcsN/hostinfo of the client; `cat` with that path and the adapter's name prints the same. The client's partition is known where \
`trunkline adapter set ADAPTER --client-name NAME` has said it.
",
};

const ERRLOG: Syntax = Syntax {
    name: "errlog",
    about: "what happened, the newest first",
    usage: &["[-ls]"],
    flags: &[
        flag("-ls", Nothing, "", "every event in full"),
        flag("-rm", One, "DAYS", "refused: the newest events are kept, and nothing has to be removed"),
    ],
    plain: 0,
    notes: "\
These are the events of `trunkline events`. T is P for what lasts, T for what was over by itself and I for what is to be known; C is H for the storage behind a volume, O for what somebody changed and S for \
the rest. The identifier is made of the kind of event. Times are UTC.
",
};

const RMDEV: Syntax = Syntax {
    name: "rmdev",
    about: "remove a device",
    usage: &["-dev DEVICE [-recursive]", "-dl DEVICE"],
    flags: &[
        flag("-dev", One, "DEVICE", "the device"),
        flag("-recursive", Nothing, "", "its virtual target devices first"),
        flag("-ucfg", Nothing, "", "refused: what is defined here is configured"),
        flag("-d", Nothing, "", "with -l, as on AIX"),
        flag("-l", One, "DEVICE", "as -dev"),
    ],
    plain: 0,
    notes: "\
The device is removed with its definition, as `trunkline NOUN rm` does it. What others use is refused, and what takes a disk from a client that is connected needs --force.
",
};

const CFGDEV: Syntax = Syntax {
    name: "cfgdev",
    about: "nothing, or whether a device is available",
    usage: &["[-dev DEVICE]"],
    flags: &[flag("-dev", One, "DEVICE", "say whether this one is available")],
    plain: 0,
    notes: "Devices are configured when they are made, and what fails is tried again by itself; HBAs of the host are looked at every two seconds.",
};

const CAT: Syntax = Syntax {
    name: "cat",
    about: "the statistics file of an adapter, with the commands of each queue",
    usage: &["/proc/sys/adapter/vfc/ADAPTER/stats", "ADAPTER/stats", "ADAPTER/hostinfo"],
    flags: &[],
    plain: 1,
    notes: "\
CMD queues are the control and event queue of a SCSI adapter, counted as one; SUBQ channels are those that the client has negotiated, none \
without a client. A virtual Fibre Channel client with one channel is a single-queue client: it has none, and its commands are those of the CMD queue. `trunkline stats ADAPTER` has the same and more.
",
};

const LSMAP: Syntax = Syntax {
    name: "lsmap",
    about: "which adapter gives its client what",
    usage: &[
        "-all [-npiv | -net] [-fmt DELIMITER] [-field NAME …]",
        "-vadapter ADAPTER [-npiv | -net]",
    ],
    flags: &[
        flag("-all", Nothing, "", "every adapter"),
        flag("-vadapter", One, "ADAPTER", "this one"),
        flag("-npiv", Nothing, "", "virtual Fibre Channel instead of virtual SCSI"),
        flag("-net", Nothing, "", "trunk adapters with their shared Ethernet adapters instead"),
        flag("-dec", Nothing, "", "the client's number in decimal"),
        FMT,
        flag("-field", Many, "NAME", "only these fields"),
    ],
    plain: 0,
    notes: "\
A block adapter is shown as a virtual SCSI adapter with one virtual target device, its volume. A client does not say \
who it is: its partition ID is the number in the adapter's name plus one (0 for virtual SCSI while it is not \
connected), and its system stays empty. Its name is what `trunkline adapter set ADAPTER --client-name NAME` has said.

With -npiv, -field takes also what the original does not have: offered, num_io_queues and used, queues that the adapter offers, that its client has and that it uses; negotiated and running, channels that the client may have and that run its queues now; cpus, how many CPUs these are bound to. Without a client all but the first are 0; a single-queue client has 1 negotiated.
",
};

const LSNPORTS: Syntax = Syntax {
    name: "lsnports",
    about: "ports, and how many adapters they can have",
    usage: &["[-fmt DELIMITER]"],
    flags: &[FMT],
    plain: 0,
    notes: "\
tports and aports: adapters that can be mapped, and how many more can. swwpns and awwpns: targets that a client can \
see, and that less those which the port reaches. Without a port it ends with 62, as the original.
",
};

const VFCMAP: Syntax = Syntax {
    name: "vfcmap",
    about: "map a virtual Fibre Channel adapter to a port, or take it off",
    usage: &["-vadapter ADAPTER -fcp PORT", "-vadapter ADAPTER -fcp"],
    flags: &[
        flag("-vadapter", One, "ADAPTER", "the adapter"),
        flag("-fcp", Maybe, "PORT", "the port; none takes the adapter off its port"),
    ],
    plain: 0,
    notes: "The client keeps running: it loses the targets of one port and finds those of the other.",
};

const LSDEV: Syntax = Syntax {
    name: "lsdev",
    about: "devices, and the attributes of one",
    usage: &[
        "[-virtual] [-type adapter|disk|optical] [-vpd]",
        "-dev DEVICE [-vpd]",
        "-dev DEVICE -attr [NAME]",
        "-dev DEVICE -range NAME",
        "-slots",
    ],
    flags: &[
        flag("-virtual", Nothing, "", "only what clients use"),
        flag("-type", One, "TYPE", "only these: adapter, disk, optical"),
        flag("-dev", One, "DEVICE", "this one"),
        flag("-attr", Maybe, "NAME", "its attributes, or the value of one"),
        flag("-range", Maybe, "NAME", "the values that the attribute may have"),
        flag("-vpd", Nothing, "", "what identifies it: WWPNs, serial number, location code"),
        flag("-slots", Nothing, "", "the location codes, and which device is there"),
    ],
    plain: 0,
    notes: DEVICES,
};

const LSATTR: Syntax = Syntax {
    name: "lsattr",
    about: "attributes of a device, as AIX prints them",
    usage: &[
        "-El DEVICE [-a NAME …] [-F FORMAT]",
        "-Dl DEVICE [-a NAME …] [-F FORMAT]",
        "-Rl DEVICE -a NAME",
    ],
    flags: &[
        flag("-E", Nothing, "", "the values that hold"),
        flag(
            "-D",
            Nothing,
            "",
            "the values that hold while none is set; nothing where it depends on others",
        ),
        flag(
            "-F",
            One,
            "FORMAT",
            "these columns: attribute, value, description, user_settable, deflt",
        ),
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
Devices are adapters, uplinks, trunk adapters, shared Ethernet adapters, ports, targets, virtual target devices, media, volumes and data planes. viosnpiv0 is the data plane `main` with its attributes for NPIV. \
True+ marks what can change while in use, True what waits for the client's next connect or a start of the data plane, \
False what is fixed.
";

pub(super) const MKVDEV: Syntax = Syntax {
    name: "mkvdev",
    about: "make a virtual target device of a virtual SCSI adapter, a shared Ethernet adapter, or a link aggregation",
    usage: &[
        "-vdev VOLUME -vadapter ADAPTER [-dev NAME]",
        "-fbo -vadapter ADAPTER [-dev NAME]",
        "-sea UPLINK -vadapter TRUNK[,TRUNK…] -default TRUNK -defaultid VLAN [-attr NAME=VALUE …] [-dev NAME]",
        "-lnagg UPLINK[,UPLINK…] [-attr NAME=VALUE …] [-dev NAME]",
    ],
    flags: &[
        flag("-vdev", One, "VOLUME", "a disk on this volume"),
        flag("-fbo", Nothing, "", "an optical drive"),
        flag("-sea", One, "UPLINK", "a shared Ethernet adapter with this real adapter"),
        flag("-lnagg", Many, "UPLINK", "a link aggregation of these: an uplink with members"),
        flag("-vadapter", One, "ADAPTER", "the adapter whose client sees it; the trunk adapters to bridge"),
        flag("-default", One, "TRUNK", "the trunk adapter to which frames without a tag belong"),
        flag("-defaultid", One, "VLAN", "its port VLAN ID"),
        flag("-attr", Many, "NAME=VALUE", "more attributes of a shared Ethernet adapter, or of a link aggregation"),
        flag("-dev", One, "NAME", "its name; else vtscsiN, vtoptN or entN"),
    ],
    plain: 0,
    notes: "\
The real adapter is an uplink without a network (`trunkline uplink create ent1`), and trunk adapters are made with `trunkline trunk create ent5 --network NETWORK`. \
With thread=1 one channel of the data plane bridges and clients' disks keep off it; with thread=0, which is what there is if nothing is said, each channel bridges for its clients. For failover give ha_mode and ctl_chan, which is here the file that both partners share (on two hosts token instead), and priority.

A link aggregation is of uplinks that connect nothing themselves, and is a real adapter like any other. mode=standard, which is what there is if nothing is said, shares flows and needs a static aggregate of the switch (`hash`, as `lsdev -attr` says it); mode=active-backup \
(netif_backup, or one uplink and backup_adapter) uses the first by name that is up. There is no LACP: mode=8023ad is refused.
",
};

const RMVDEV: Syntax = Syntax {
    name: "rmvdev",
    about: "remove virtual target devices, a shared Ethernet adapter, or a link aggregation",
    usage: &["-vtd NAME", "-vdev VOLUME", "-sea NAME", "-lnagg NAME"],
    flags: &[
        flag("-vtd", One, "NAME", "this one"),
        flag("-vdev", One, "VOLUME", "all that are on this volume"),
        flag(
            "-sea",
            One,
            "NAME",
            "this shared Ethernet adapter; its uplink and trunk adapters stay",
        ),
        flag("-lnagg", One, "NAME", "this link aggregation; its members stay"),
    ],
    plain: 0,
    notes: "",
};

const MKREP: Syntax = Syntax {
    name: "mkrep",
    about: "nothing: the media repository is always there",
    usage: &["[-sp POOL -size SIZE]"],
    flags: &[
        flag("-sp", One, "POOL", "taken, and changes nothing"),
        flag("-size", One, "SIZE", "taken, and changes nothing"),
    ],
    plain: 0,
    notes: "Media are files in the server's state folder, limited by its file system alone.",
};

const LSREP: Syntax = Syntax {
    name: "lsrep",
    about: "media, their sizes in MiB, and the drives that have them",
    usage: &[""],
    flags: &[],
    plain: 0,
    notes: "",
};

const MKVOPT: Syntax = Syntax {
    name: "mkvopt",
    about: "make an optical medium of an ISO image",
    usage: &["-name NAME -file ISO [-ro] [-link]"],
    flags: &[
        flag("-name", One, "NAME", "its name"),
        flag("-file", One, "ISO", "the image; it is copied into the repository"),
        flag("-ro", Nothing, "", "taken: media are always read-only"),
        flag("-link", Nothing, "", "use the image where it is (not in the original)"),
    ],
    plain: 0,
    notes: "",
};

const RMVOPT: Syntax = Syntax {
    name: "rmvopt",
    about: "remove an optical medium",
    usage: &["-name NAME"],
    flags: &[flag("-name", One, "NAME", "the medium")],
    plain: 0,
    notes: "",
};

const LSVOPT: Syntax = Syntax {
    name: "lsvopt",
    about: "optical drives, and what is in them",
    usage: &["[-vtd NAME]"],
    flags: &[flag("-vtd", One, "NAME", "only this drive")],
    plain: 0,
    notes: "",
};

const LOADOPT: Syntax = Syntax {
    name: "loadopt",
    about: "put a medium into an optical drive",
    usage: &["-vtd NAME -disk MEDIUM"],
    flags: &[flag("-vtd", One, "NAME", "the drive"), flag("-disk", One, "MEDIUM", "the medium")],
    plain: 0,
    notes: "",
};

const UNLOADOPT: Syntax = Syntax {
    name: "unloadopt",
    about: "take the medium out of an optical drive",
    usage: &["-vtd NAME"],
    flags: &[flag("-vtd", One, "NAME", "the drive")],
    plain: 0,
    notes: "",
};

pub(super) const IN_CLUSTER: Flag =
    flag("-clustername", One, "CLUSTER", "`trunkline`, which is this server, or left out");
pub(super) const SP: Flag =
    flag("-sp", One, "POOL", "the storage pool; may be left out where there is one");
const IN_TIER: Flag = flag("-tier", One, "TIER", "the tier; else all, or the default one");

const LSSP: Syntax = Syntax {
    name: "lssp",
    about: "storage pools, and the logical units of one",
    usage: &[
        "[-clustername CLUSTER] [-sp POOL] [-field NAME …] [-fmt DELIMITER]",
        "[-clustername CLUSTER] [-sp POOL] -bd [-fmt DELIMITER]",
    ],
    flags: &[
        IN_CLUSTER,
        SP,
        flag("-bd", Nothing, "", "its logical units, and how full they are"),
        flag("-field", Many, "NAME", "only these: pool, size, free, total, overcommit, lus, type, id"),
        FMT,
    ],
    plain: 0,
    notes: "\
Sizes are in MB. Free is what is neither used nor set aside for thick logical units. There are no local pools: each is one that `trunkline pool create` made.
",
};

const LU: Syntax = Syntax {
    name: "lu",
    about: "logical units of storage pools",
    usage: &[
        "-list [-sp POOL] [-tier TIER] [-fmt DELIMITER]",
        "-create -lu NAME -size SIZE [-thick] [-sp POOL] [-tier TIER] [-vadapter ADAPTER [-vtd NAME]]",
        "-map -lu NAME -vadapter ADAPTER [-vtd NAME]",
        "-unmap -lu NAME [-vadapter ADAPTER | -vtd NAME]",
        "-resize -lu NAME -size SIZE",
        "-move -lu NAME -dsttier TIER",
        "-remove -lu NAME | -remove -all [-sp POOL] [-tier TIER]",
    ],
    flags: &[
        flag("-list", Nothing, "", "show them"),
        flag("-create", Nothing, "", "make one"),
        flag("-map", Nothing, "", "give one to a virtual SCSI adapter"),
        flag("-unmap", Nothing, "", "take it from adapters; its data stays"),
        flag("-resize", Nothing, "", "make one larger; a running guest sees it at once"),
        flag("-move", Nothing, "", "let one go to another tier, while its clients work"),
        flag("-dsttier", One, "TIER", "where it goes"),
        flag("-remove", Nothing, "", "remove one, with what is in it"),
        flag("-lu", One, "NAME", "its name"),
        flag("-luudid", One, "UDID", "instead of the name, as -list has it"),
        flag("-size", One, "SIZE", "such as 10G; a number alone is MB"),
        flag("-thick", Nothing, "", "set all of its space aside now"),
        flag("-vadapter", One, "ADAPTER", "a virtual SCSI adapter"),
        flag("-vtd", One, "NAME", "the virtual target device; else vtscsiN"),
        flag("-all", Nothing, "", "all of the pool"),
        IN_CLUSTER,
        SP,
        IN_TIER,
        FMT,
    ],
    plain: 0,
    notes: "\
A logical unit is a volume of the kind `lu`, by the same name. One that was made and is nobody's is listed as its number in brackets, and `trunkline lu purge` removes it. To make one smaller there is `trunkline lu resize --shrink`. \
-move ends when the logical unit is in its new tier; what it has moves there by itself, and `trunkline pool show` says how far that is.
",
};

const SNAPSHOT: Syntax = Syntax {
    name: "snapshot",
    about: "what logical units held at one moment",
    usage: &[
        "-create [NAME] -lu NAME ... [-spname POOL]",
        "-delete NAME [-lu NAME ...]",
        "-rollback NAME [-lu NAME ...]",
        "-list [-spname POOL] [-lu NAME ...] [-fmt DELIMITER]",
    ],
    flags: &[
        flag("-create", Maybe, "NAME", "make one, of all that -lu names at the same moment; prints its name"),
        flag("-delete", One, "NAME", "remove one"),
        flag("-rollback", One, "NAME", "let its logical units hold again what it holds; what was written since is gone"),
        flag("-list", Nothing, "", "show logical units, with their snapshots below them"),
        flag("-lu", Many, "NAME", "logical units"),
        IN_CLUSTER,
        SP,
        flag("-spname", One, "POOL", "the same"),
        FMT,
    ],
    plain: 0,
    notes: "\
A snapshot of several logical units is one object, and is removed as a whole. A logical unit that a client uses is rolled back with --force alone. `trunkline lu clone` makes a logical unit of a snapshot.
",
};

/// PVs that are named at once.
const PVS_MAX: usize = 1024;

const PV: Syntax = Syntax {
    name: "pv",
    about: "physical volumes of storage pools",
    usage: &[
        "-list [-sp POOL] [-fmt DELIMITER]",
        "-add [GROUP:] PATH … [-sp POOL] [-tier TIER]",
        "-remove -pv PATH … [-sp POOL]",
        "-replace -oldpv PATH -newpv PATH [-sp POOL]",
    ],
    flags: &[
        flag("-list", Nothing, "", "show them"),
        flag("-add", Many, "PATH", "add disks or files that hold nothing, of a mirrored pool behind their failure group and `:`"),
        flag("-remove", Nothing, "", "remove some: what is on them moves to the others first"),
        flag("-pv", Many, "PATH", "those to remove"),
        flag("-replace", Nothing, "", "put one in the place of another"),
        flag("-oldpv", One, "PATH", "the one that leaves"),
        flag("-newpv", One, "PATH", "the one that comes"),
        IN_CLUSTER,
        SP,
        IN_TIER,
        flag("-fg", One, "GROUP", "the failure group of those that are added"),
        FMT,
    ],
    plain: PVS_MAX,
    notes: "\
Names are paths. OFFLINE is one that is away, SYNCING one that gets what it missed; `trunkline pv list` says how far that is. -remove and -replace end when the removal has begun: the state is REMOVING until what is on the volume has moved, and `trunkline pv list` says how far it is.
",
};

const TIER: Syntax = Syntax {
    name: "tier",
    about: "the tiers of storage pools: physical volumes of one kind",
    usage: &[
        "-list [-sp POOL] [-fmt DELIMITER]",
        "-create -tier TIER: [GROUP:] PATH … [-sp POOL]",
        "-modify -tier TIER -attr tier_name=NAME | default=yes [-sp POOL]",
        "-remove -tier TIER [-sp POOL]",
    ],
    flags: &[
        flag("-list", Nothing, "", "show them"),
        flag("-create", Nothing, "", "make one"),
        flag("-modify", Nothing, "", "give one another name, or let new logical units be in it"),
        flag("-remove", Nothing, "", "remove one in which there is no logical unit"),
        flag("-tier", One, "TIER", "its name"),
        flag("-attr", One, "NAME=VALUE", "tier_name, or default"),
        IN_CLUSTER,
        SP,
        FMT,
    ],
    plain: PVS_MAX,
    notes: "The first one is SYSTEM, and there are up to ten. Those of a mirrored pool have physical volumes of both failure groups. MIRROR_STATE is NOT_MIRRORED, SYNCED, SYNCING while PVs get what they missed, or DEGRADED while some are away.",
};

const FAILGRP: Syntax = Syntax {
    name: "failgrp",
    about: "the failure groups of storage pools: each has one copy",
    usage: &[
        "-list [-sp POOL] [-fmt DELIMITER]",
        "-modify -fg GROUP -attr fg_name=NAME [-sp POOL]",
        "-create GROUP: PATH … [-sp POOL]",
        "-remove -fg GROUP [-sp POOL]",
    ],
    flags: &[
        flag("-list", Nothing, "", "show them, and how they stand"),
        flag("-modify", Nothing, "", "give one another name"),
        flag("-create", Nothing, "", "make the second one"),
        flag("-remove", Nothing, "", "remove the second one"),
        flag("-fg", One, "GROUP", "its name"),
        flag("-attr", One, "fg_name=NAME", "the new name"),
        IN_CLUSTER,
        SP,
        IN_TIER,
        FMT,
    ],
    plain: PVS_MAX,
    notes: "\
A pool has the failure groups that it was made with (`trunkline pool create NAME --pvs PATH,… --mirror PATH,…`): -create and -remove are refused where it has been open.
",
};

const CLUSTER: Syntax = Syntax {
    name: "cluster",
    about: "this server as a cluster of one node",
    usage: &["-list [-fmt DELIMITER]", "-status [-fmt DELIMITER]"],
    flags: &[
        flag("-list", Nothing, "", "its name and its node"),
        flag("-status", Nothing, "", "how it is, and each of its storage pools"),
        IN_CLUSTER,
        FMT,
    ],
    plain: 0,
    notes: "A storage pool is used by one server. Pools are made with `trunkline pool create`, and there is no repository disk.",
};
