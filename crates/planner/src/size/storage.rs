//! Processors, memory and queues for virtual Fibre Channel, virtual SCSI and shared storage pools.

use super::given::Given;
use super::input::{Backing, Ssp, Vios, VirtualFc, Vscsi};
use super::table::{Beyond, by_size};
use super::total::{Part, processors};
use crate::facts::{Facts, id};
use crate::trace::{Figure, Origin, Source, Term, number};

/// What was given, or the default of an attribute of the original.
fn given_or_default(
    facts: &Facts,
    name: &str,
    given: Option<&Given<u32>>,
    (device, attribute): (&str, &str),
    part: &mut Part,
) -> Term {
    if let Some(given) = given {
        return part.given(given, name, "");
    }
    let known = facts.attribute(device, attribute);
    let default = known.and_then(|known| known.default.as_ref()).and_then(|d| d.as_number());
    let value = default.and_then(|d| u32::try_from(d).ok()).map_or(f64::NAN, f64::from);
    let source = known.map_or_else(
        || Source { id: String::new(), text: "not in the data".to_owned(), confirmed: false },
        |known| Source {
            text: format!("the default of `{attribute}`: {}", known.source.text),
            ..known.source.clone()
        },
    );
    Term::new(name, value, "", Origin::Fact(source))
}

fn iops(given: &Given<f64>, part: &mut Part) -> Term {
    part.given(given, "I/O/s", "1/s")
}

fn block(given: &Given<u32>, part: &mut Part) -> Term {
    part.given(given, "bytes of an I/O", "bytes")
}

/// Sizes clients over virtual Fibre Channel.
pub(super) fn virtual_fc(facts: &Facts, number: usize, fc: &VirtualFc, vios: &Vios) -> Part {
    let mut part = Part::new(format!("virtual FC {number}"), fc.name.as_deref());
    let of_client = ("fcs-client", "num_io_queues");
    let queues = given_or_default(facts, "queues", fc.queues.as_ref(), of_client, &mut part);
    let adapters = part.given(&fc.adapters, "adapters", "");
    let cost =
        if queues.high > 1.0 { id::VFC_CYCLES_PER_IO_MULTI } else { id::VFC_CYCLES_PER_IO_SINGLE };
    let terms = vec![
        iops(&fc.iops, &mut part),
        facts.term(cost, "cycles/I/O"),
        block(&fc.block_bytes, &mut part),
        facts.term(id::VFC_CYCLES_PER_BYTE, "cycles/byte"),
    ];
    let formula = "I/O/s × (cycles/I/O + bytes of an I/O × cycles/byte)";
    let cycles = part.step("cycles/s of I/O", "cycles/s", formula, terms);
    part.cycles(vec![cycles]);
    processors(facts, vios, &mut part);
    let in_flight = in_flight(facts, fc, &adapters, &mut part);
    queue_figures(facts, fc, &in_flight, &queues, &mut part);
    memory(facts, adapters, queues, &mut part);
    part.notes.push(
        "No source gives the cost of virtual Fibre Channel: processors are an assumption. Measure yours (cycles/I/O = processors used × clock ÷ I/O/s) and put it in a data file."
            .to_owned(),
    );
    part
}

/// I/Os in flight in one adapter (Little's law), and the command elements that they need.
fn in_flight(facts: &Facts, fc: &VirtualFc, adapters: &Term, part: &mut Part) -> Term {
    let latency = match &fc.latency_ms {
        Some(latency) => part.given(latency, "response time", "ms"),
        None => facts.term(id::VFC_LATENCY_MS, "response time"),
    };
    let terms = vec![iops(&fc.iops, part), latency, adapters.clone()];
    let formula = "I/O/s × response time ÷ 1000 ÷ adapters";
    let in_flight = part.step("I/Os in flight of an adapter", "", formula, terms);
    let needed = part.step(
        "num_cmd_elems of an adapter, at least",
        "command elements",
        "round_up(I/Os in flight of an adapter, 1)",
        vec![in_flight.clone()],
    );
    let most = facts.attribute("fcs-client", "num_cmd_elems").and_then(|known| known.max);
    if let Some(most) = most.and_then(|most| u32::try_from(most).ok())
        && needed.high > f64::from(most)
    {
        part.notes.push(format!(
            "An adapter has at most {most} command elements: give the load more adapters, or expect I/Os to wait."
        ));
    }
    in_flight
}

/// Whether the queues have enough to do; with fewer I/Os in each than the threshold, fewer queues do as well.
fn queue_figures(facts: &Facts, fc: &VirtualFc, in_flight: &Term, queues: &Term, part: &mut Part) {
    let each = part.step(
        "I/Os in a queue",
        "",
        "I/Os in flight of an adapter ÷ queues",
        vec![in_flight.clone(), queues.clone()],
    );
    let least = facts.term(id::MQ_IOS_PER_QUEUE_MIN, "least I/Os in a queue");
    let enough = least.value();
    if queues.high <= 1.0 || each.low >= least.high {
        return;
    }
    let worth = part.step(
        "queues that have enough to do",
        "queues",
        "max(1, min(queues, round_down(I/Os in flight of an adapter ÷ least I/Os in a queue, 1)))",
        vec![in_flight.clone(), least, queues.clone()],
    );
    let below = facts.number(id::MQ_IOPS_MIN);
    let rate = match fc.iops.value() < below.low {
        true => format!(" and the rate is below {} I/O/s", number(below.low)),
        false => String::new(),
    };
    part.notes.push(format!(
        "A queue may have fewer than {enough} I/Os at a time{rate}: {} of {} queues do as well, with less processor time.",
        worth.value(),
        queues.value()
    ));
}

fn memory(facts: &Facts, adapters: Term, queues: Term, part: &mut Part) {
    part.hypervisor_memory = Some(part.step(
        "hypervisor memory",
        "MB",
        "adapters × MB of an adapter",
        vec![adapters.clone(), facts.term(id::VFC_MEMORY_MB, "MB of an adapter")],
    ));
    let of_vios = ("viosnpiv0", "num_local_cmds");
    let commands = given_or_default(facts, "num_local_cmds", None, of_vios, part);
    part.vios_memory = Some(part.step(
        "VIOS memory of queues",
        "MB",
        "adapters × queues × num_local_cmds × bytes of a command ÷ 1048576",
        vec![adapters, queues, commands, facts.term(id::VFC_COMMAND_BYTES, "bytes of a command")],
    ));
}

fn vscsi_cost(
    facts: &Facts,
    backing: Backing,
    bytes: &Given<u32>,
    part: &mut Part,
) -> Option<Term> {
    let prefix = match backing {
        Backing::Disk => "vscsi.cycles-per-io.disk.",
        Backing::Volume => "vscsi.cycles-per-io.volume.",
    };
    let size = block(bytes, part);
    let cost = by_size(facts, prefix, "cycles/I/O", &size, &Beyond { per_byte: None });
    let each = cost.figures.last().map(Term::of);
    part.figures.extend(cost.figures);
    part.notes.extend(cost.note);
    each
}

/// Sizes clients over virtual SCSI.
pub(super) fn vscsi(facts: &Facts, number: usize, vscsi: &Vscsi, vios: &Vios) -> Part {
    let mut part = Part::new(format!("virtual SCSI {number}"), vscsi.name.as_deref());
    let mut terms = vec![iops(&vscsi.iops, &mut part)];
    terms.extend(vscsi_cost(facts, vscsi.backing, &vscsi.block_bytes, &mut part));
    let cycles = part.step("cycles/s of I/O", "cycles/s", "I/O/s × cycles/I/O", terms);
    part.cycles(vec![cycles]);
    processors(facts, vios, &mut part);
    if let Some(disks) = &vscsi.disks {
        let of_disk = ("hdisk-vscsi", "queue_depth");
        let given = vscsi.queue_depth.as_ref();
        let depth = given_or_default(facts, "queue_depth", given, of_disk, &mut part);
        let each = part.step(
            "disks of an adapter",
            "disks",
            "round_down((elements − reserved) ÷ (queue_depth + elements of a disk), 1)",
            vec![
                facts.term(id::VSCSI_ELEMENTS, "elements"),
                facts.term(id::VSCSI_ELEMENTS_RESERVED, "reserved"),
                depth,
                facts.term(id::VSCSI_ELEMENTS_PER_DISK, "elements of a disk"),
            ],
        );
        let disks = part.given(disks, "disks", "");
        let formula = "round_up(disks ÷ disks of an adapter, 1)";
        part.step("virtual SCSI adapters of a client", "adapters", formula, vec![disks, each]);
    }
    part
}

/// Sizes clients of a shared storage pool.
pub(super) fn ssp(facts: &Facts, number: usize, ssp: &Ssp, vios: &Vios) -> Part {
    let mut part = Part::new(format!("shared storage pool {number}"), ssp.name.as_deref());
    let mut terms = vec![iops(&ssp.iops, &mut part)];
    terms.extend(vscsi_cost(facts, Backing::Disk, &ssp.block_bytes, &mut part));
    terms.push(facts.term(id::SSP_CYCLES_PER_IO, "cycles of the pool"));
    let formula = "I/O/s × (cycles/I/O + cycles of the pool)";
    let cycles = part.step("cycles/s of I/O", "cycles/s", formula, terms);
    part.cycles(vec![cycles]);
    processors(facts, vios, &mut part);
    node(facts, ssp, &mut part);
    luns(facts, ssp, &mut part);
    part.notes.push(measured(facts));
    part
}

/// What its source measured through a pool and beside it.
fn measured(facts: &Facts) -> String {
    let value = |id| facts.number(id).low;
    format!(
        "The source measured {} MB/s at {} ms through a pool, {} MB/s at {} ms on a whole disk over virtual SCSI, and {} MB/s at {} ms on the VIOS itself (64 KB, random, 80 % reads, disks of 2013): a pool costs little beside the disks.",
        value(id::SSP_MEASURED_POOL_MB),
        value(id::SSP_MEASURED_POOL_MS),
        value(id::SSP_MEASURED_VSCSI_MB),
        value(id::SSP_MEASURED_VSCSI_MS),
        value(id::SSP_MEASURED_DIRECT_MB),
        value(id::SSP_MEASURED_DIRECT_MS)
    )
}

/// The least that a node must have, by the number of its clients.
fn node(facts: &Facts, ssp: &Ssp, part: &mut Part) {
    let clients = f64::from(ssp.clients.value());
    let small = clients <= facts.number(id::SSP_CLIENTS_AT_MIN).high;
    let (of_processors, of_memory) = match small {
        true => (id::SSP_NODE_PROCESSORS_MIN, id::SSP_NODE_MEMORY_GB_MIN),
        false => (id::SSP_PROCESSORS_AT_LARGE, id::SSP_MEMORY_GB_AT_LARGE),
    };
    part.least_processors = Some(part.fact(facts, of_processors, "processors of a node, at least"));
    part.least_memory = Some(part.fact(facts, of_memory, "memory of a node, at least"));
    let most = facts.number(id::SSP_CLIENTS_AT_LARGE);
    if clients > most.high {
        part.notes.push(format!(
            "The source names at most {} clients of one VIOS; {} need more than one node, or a figure of your own.",
            most.high,
            ssp.clients.value()
        ));
    }
}

/// LUNs of the pool, and whether they take what the clients send at a time.
fn luns(facts: &Facts, ssp: &Ssp, part: &mut Part) {
    let size = part.given(&ssp.pool_tb, "pool TB", "TB");
    let large = size.high > facts.number(id::SSP_LUNS_PER_TB_ABOVE).high;
    let least = facts.term(id::SSP_LUNS_MIN, "least LUNs");
    let recommended = match large {
        true => part.step(
            "LUNs of the pool, recommended",
            "LUNs",
            "max(least LUNs, round_up(pool TB × LUNs of a TB, 1))",
            vec![least, size, facts.term(id::SSP_LUNS_PER_TB, "LUNs of a TB")],
        ),
        false => part.step("LUNs of the pool, recommended", "LUNs", "least LUNs", vec![least]),
    };
    let luns = match &ssp.luns {
        Some(luns) => part.given(luns, "LUNs", ""),
        None => recommended.clone().named("LUNs"),
    };
    if luns.high < recommended.low {
        part.notes.push(format!(
            "The pool has {} LUNs; {} are recommended for its size.",
            luns.value(),
            recommended.value()
        ));
    }
    let (of_lu, of_lun) = (("hdisk-lu", "queue_depth"), ("hdisk-pool", "queue_depth"));
    let lu_depth = given_or_default(facts, "LU depth", ssp.lu_depth.as_ref(), of_lu, part);
    let lun_depth = given_or_default(facts, "LUN depth", ssp.lun_depth.as_ref(), of_lun, part);
    let clients = part.given(&ssp.clients, "clients", "");
    let name = "I/Os that clients send at a time, at most";
    let sent = part.step(name, "", "clients × LU depth", vec![clients, lu_depth]);
    let taken = part.step(
        "I/Os that the pool takes at a time",
        "",
        "LUNs × LUN depth",
        vec![luns.clone(), lun_depth],
    );
    if sent.high <= taken.low {
        return;
    }
    let sent = sent.named("sent at a time");
    let needed = Figure::new(
        "LUN depth that takes them all",
        "",
        "round_up(sent at a time ÷ LUNs, 1)",
        vec![sent.clone(), luns],
    );
    part.notes.push(format!(
        "Clients can send {} I/Os at a time and the pool takes {}: raise `queue_depth` of its LUNs (chdev -dev hdiskN -attr queue_depth=N), as far as the storage allows, up to {}.",
        sent.value(),
        taken.value(),
        needed.value()
    ));
    part.figures.push(needed);
}
