//! What is done to clients while they are there: as the balancer, an operator or their own driver does it.

use std::cell::RefCell;
use std::os::fd::AsFd as _;

use dataplane::sim::{House, Session};
use memory::sim;
use spec::{AdapterSpec, DeviceSpec};
use uring::sim as kernel;

use crate::atlas::{Phase, Under};
use crate::client::SECTOR;
use crate::clients::Any;
use crate::counts::Counts;
use crate::drawn::{self, Changed};
use crate::liar::Liar;
use crate::world::{Process, Scene, WAITS_NS, look_at_size};

/// A client tells of its rings.
pub(crate) fn bring(
    session: &mut Session,
    client: &RefCell<Any>,
    scene: &Scene,
) -> Result<(), String> {
    let mut rings = client.borrow().front().rings();
    while !rings.is_empty() {
        let ring = rings.swap_remove(sim::pick(rings.len()));
        let number = ring.number;
        session.place(number, sim::pick(scene.drawn.channels as usize));
        session.set_ring(ring)?;
        session.enable(number, true)?;
        sim::tell(|| format!("queue {number} of {} starts", client.borrow().front().name));
    }
    Ok(())
}

fn pick_queue(scene: &Scene) -> (usize, u16) {
    let number = sim::pick(scene.clients.len());
    let client = scene.clients[number].borrow();
    let lines = &client.front().lines;
    (number, lines[sim::pick(lines.len())].number)
}

/// A queue goes to another channel, as the balancer does it.
pub(crate) fn move_one(process: &mut Process, scene: &Scene, counts: &mut Counts) {
    sim::met("a queue moves");
    let _changing = Under::new(Phase::Changing);
    let (number, queue) = pick_queue(scene);
    let at = sim::pick(process.house.channels());
    sim::tell(|| format!("queue {queue} of client{number} moves to channel {at}"));
    scene.unit.borrow_mut().shift(number);
    process.sessions[number].place(queue, at);
    scene.unit.borrow_mut().shift(number);
    counts.moves += 1;
}

/// Something changes under a client: see [`Changed`].
pub(crate) fn change_one(
    process: &mut Process,
    scene: &Scene,
    counts: &mut Counts,
) -> Result<(), String> {
    let changed = scene.drawn.changes[sim::pick(scene.drawn.changes.len())];
    let (number, queue) = pick_queue(scene);
    sim::met(changed.name());
    let _changing = Under::new(Phase::Changing);
    match changed {
        Changed::Presence => return renew(process, scene, number),
        Changed::Truncated => return truncate(process, scene, number),
        Changed::Map => return map(process, scene, number, counts),
        Changed::Unit => return remake(process, scene, counts),
        Changed::Size => return resize(process, scene, counts),
        _ => {}
    }
    let Process { sessions, house, .. } = process;
    let session = &mut sessions[number];
    scene.unit.borrow_mut().shift(number);
    match changed {
        Changed::Memory => {
            sim::tell(|| format!("client{number} tells its memory anew"));
            let regions = scene.clients[number].borrow().front().memory.regions();
            session.set_memory(regions.expect("descriptors"))?;
        }
        Changed::Enabled => {
            sim::tell(|| format!("client{number} disables queue {queue} for a while"));
            session.enable(queue, false)?;
            (0..sim::pick(40)).for_each(|_| sim::others());
            session.enable(queue, true)?;
            // Meanwhile nobody was to look into its ring, and functions of this client wait until all its queues are back.
            scene.clients[number].borrow_mut().front_mut().is_served_anew();
        }
        Changed::Bounds => rebound(session, house, number)?,
        _ => session.reset_marks(),
    }
    scene.unit.borrow_mut().shift(number);
    Ok(())
}

/// An adapter may have more or less of what there is, or no limit.
fn rebound(session: &mut Session, house: &House, number: usize) -> Result<(), String> {
    let mut spec = AdapterSpec::clone(&session.spec());
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { return Ok(()) };
    if sim::once_in(2) {
        scsi.commands.num_cmd_elems = 1 << sim::pick(7);
    } else {
        scsi.limit = sim::once_in(2).then(drawn::limit);
    }
    if let Some(port) = &mut scsi.port {
        port.num_cmd_elems = 2 << sim::pick(6);
    }
    sim::tell(|| format!("client{number} gets {:?}", spec.scsi()));
    session.change(house, spec)
}

/// The unit is taken from a client that has it, or given to one that has it not.
fn map(
    process: &mut Process,
    scene: &Scene,
    number: usize,
    counts: &mut Counts,
) -> Result<(), String> {
    let Process { sessions, house, .. } = process;
    let (session, unit) = (&mut sessions[number], &scene.unit);
    let mut spec = AdapterSpec::clone(&session.spec());
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { return Ok(()) };
    let luns = &mut scsi.targets[0].luns;
    counts.maps += 1;
    scene.removed.set(true);
    if luns.is_empty() {
        sim::tell(|| format!("client{number} is given the unit"));
        luns.insert(0, "disk".to_owned());
        unit.borrow_mut().give(number, &scene.disk.borrow())?;
        session.change(house, spec)?;
        unit.borrow_mut().given(number);
    } else {
        sim::tell(|| format!("the unit is taken from client{number}"));
        luns.clear();
        unit.borrow_mut().take(number);
        session.change(house, spec)?;
        unit.borrow_mut().taken(number, &scene.disk.borrow());
    }
    Ok(())
}

/// The unit is made anew, as where its path or its mask changes: taken from everybody before, and given to everybody again.
fn remake(process: &mut Process, scene: &Scene, counts: &mut Counts) -> Result<(), String> {
    let has = |process: &Process, number: usize| {
        let spec = process.sessions[number].spec();
        spec.scsi().is_some_and(|scsi| !scsi.targets[0].luns.is_empty())
    };
    for number in 0..scene.clients.len() {
        if has(process, number) {
            map(process, scene, number, counts)?;
        }
    }
    sim::tell(|| "the unit is made anew".into());
    process.house.remake_unit("disk")?;
    (0..scene.clients.len()).try_for_each(|number| map(process, scene, number, counts))
}

/// The volume gets another size.
fn resize(process: &mut Process, scene: &Scene, counts: &mut Counts) -> Result<(), String> {
    look_at_size(scene)?;
    let (whole, clients) = (scene.drawn.sectors, scene.clients.len());
    let size = if sim::once_in(2) { whole } else { 1 + sim::pick(whole as usize) as u64 };
    sim::tell(|| format!("the volume is to have {size} sectors"));
    counts.sizes += 1;
    let shift = || (0..clients).for_each(|number| scene.unit.borrow_mut().shift(number));
    shift();
    let mut done = || {
        if size < scene.size.replace(size) {
            scene.unit.borrow_mut().was_cut = true;
            scene.disk.borrow_mut().cut(size);
            if let Ok(file) = std::fs::File::open(scene.path()) {
                kernel::truncated(file.as_fd(), size * SECTOR);
            }
        }
    };
    let Process { sessions, house, .. } = process;
    house.resize(sessions, "disk", size * SECTOR, &mut done)?;
    shift();
    Ok(())
}

/// A client goes and comes again, or its adapter is removed under it and made anew.
fn renew(process: &mut Process, scene: &Scene, number: usize) -> Result<(), String> {
    let Process { sessions, house, .. } = process;
    let (session, client) = (&mut sessions[number], &scene.clients[number]);
    let removed = sim::once_in(2);
    sim::tell(|| format!("client{number} {}", if removed { "loses its adapter" } else { "goes" }));
    scene.unit.borrow_mut().leave(number);
    // What failed in passing is tried again after some time, the channel's mailbox too; elements of a port come back when others have waited.
    let port = scene.drawn.scsi.as_ref().is_some_and(|(_, port)| port.is_some());
    let hurries = removed && scene.drawn.faults.passing == 0 && !port;
    let before = scene.idle.get();
    session.leave(removed);
    let waited = scene.idle.get() - before;
    if hurries && waited > WAITS_NS {
        return Err(format!("client{number}: the removal of its adapter waits {waited} ns"));
    }
    if removed {
        scene.removed.set(true);
        client.borrow_mut().front_mut().is_counted_anew();
    }
    let said = client.borrow().front().says(true, scene.drawn.in_bytes);
    session.come(house, said, removed)?;
    bring(session, client, scene)?;
    scene.unit.borrow_mut().arrive(number);
    Ok(())
}

impl Any {
    /// Its memory is taken away, or a part; whether it is.
    pub(crate) fn loses_memory(&mut self) -> bool {
        match self {
            Any::Block(client) => {
                client.loses_memory();
                true
            }
            Any::Scsi(client) => client.loses_memory(),
        }
    }

    /// After that it starts again, when nothing of it is under way.
    pub(crate) fn starts_again(&mut self) -> Result<(), String> {
        let again = match self {
            Any::Block(client) => Any::Block(client.started_again()),
            Any::Scsi(client) => Any::Scsi(client.started_again()?),
        };
        *self = again;
        Ok(())
    }
}

/// The memory of a client ends before, as where its host is out of it. Whatever it has asked is done with less, or stops; then it starts again, with nothing under
/// way.
fn truncate(process: &mut Process, scene: &Scene, number: usize) -> Result<(), String> {
    let Process { sessions, house, .. } = process;
    let (session, client) = (&mut sessions[number], &scene.clients[number]);
    if !client.borrow_mut().loses_memory() {
        return Ok(());
    }
    (0..sim::pick(60)).for_each(|_| sim::others());
    let removed = sim::once_in(2);
    scene.unit.borrow_mut().leave(number);
    session.leave(removed);
    client.borrow_mut().starts_again()?;
    scene.removed.set(true);
    // What the one before has not heard of was counted, where the adapter is the same.
    client.borrow_mut().front_mut().is_counted = removed;
    let said = client.borrow().front().says(true, scene.drawn.in_bytes);
    session.come(house, said, removed)?;
    bring(session, client, scene)?;
    // That its queues came is no wait of its requests.
    client.borrow_mut().front_mut().is_served_anew();
    scene.unit.borrow_mut().arrive(number);
    Ok(())
}

/// The client that lies comes. What it says may be refused: then it goes.
pub(crate) fn come_liar(process: &mut Process, scene: &Scene) {
    let (Some(liar), Some(lying)) = (&scene.liar, &scene.drawn.liar) else { return };
    let (queues, said) = {
        let liar = liar.borrow();
        (liar.queues(), liar.says(sim::once_in(2)))
    };
    let (spec, _) = scene.drawn.of_liar(lying, queues, &scene.path_of_liar());
    let Process { liar: session, house, .. } = process;
    let came = match session {
        Some(session) => session.come(house, said, false),
        None => house.connect(spec, said).map(|new| *session = Some(new)),
    };
    match came {
        Ok(()) => bring_liar(process, scene),
        Err(refused) => {
            sim::tell(|| format!("the liar is refused: {refused}"));
            leave_liar(process, sim::once_in(2));
        }
    }
}

/// It tells of its rings.
fn bring_liar(process: &mut Process, scene: &Scene) {
    let (Some(liar), Some(session)) = (&scene.liar, &mut process.liar) else { return };
    let rings = liar.borrow().rings();
    for ring in rings {
        let number = ring.number;
        session.place(number, sim::pick(scene.drawn.channels as usize));
        let set = session.set_ring(ring).and_then(|()| session.enable(number, true));
        if let Err(refused) = set {
            sim::tell(|| format!("the liar is refused: {refused}"));
            return leave_liar(process, sim::once_in(2));
        }
    }
}

fn leave_liar(process: &mut Process, removed: bool) {
    let session = if removed { &mut process.liar.take() } else { &mut process.liar };
    session.iter_mut().for_each(|session| session.leave(removed));
}

/// So much longer it stays as it is when it has nothing more to say.
const RESTS: u64 = 8;

/// Something that the client that lies does with its session, or that its volume does.
pub(crate) fn change_liar(process: &mut Process, scene: &Scene) -> Result<(), String> {
    let (Some(liar), Some(lying)) = (&scene.liar, &scene.drawn.liar) else { return Ok(()) };
    if sim::once_in(lying.hangs_every) {
        sim::met("a volume hangs");
        sim::tell(|| "the liar's volume does not answer for a while".into());
        let file = std::fs::File::open(scene.path_of_liar()).map_err(|error| error.to_string())?;
        kernel::hang(file.as_fd(), 1_000_000 << sim::pick(4));
    }
    // One that has nothing more to say comes and goes seldom: what is new then is that it comes and goes.
    let rests = if liar.borrow().left == 0 { RESTS } else { 1 };
    if !sim::once_in(lying.change_every * rests) {
        return Ok(());
    }
    sim::met("a liar changes");
    let anew = |left: u32| *liar.borrow_mut() = Liar::new(lying.scsi, left);
    let left = liar.borrow().left;
    let what = sim::pick(6);
    sim::tell(|| format!("the liar does {what}"));
    let queue = liar.borrow().a_queue();
    let regions = liar.borrow().regions();
    let Some(session) = &mut process.liar else {
        anew(left);
        come_liar(process, scene);
        return Ok(());
    };
    let done = match what {
        0 => {
            session.place(queue, sim::pick(scene.drawn.channels as usize));
            Ok(())
        }
        1 => session.enable(queue, sim::once_in(2)),
        2 => session.set_memory(regions),
        // The memory of its next life, under the rings of this one.
        3 => {
            anew(left);
            let regions = liar.borrow().regions();
            session.set_memory(regions)
        }
        _ => {
            leave_liar(process, sim::once_in(2));
            if !sim::once_in(3) {
                anew(left);
            }
            come_liar(process, scene);
            Ok(())
        }
    };
    if let Err(refused) = done {
        sim::tell(|| format!("the liar is refused: {refused}"));
        leave_liar(process, sim::once_in(2));
    }
    Ok(())
}
