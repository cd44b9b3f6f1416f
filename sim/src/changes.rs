//! What is done to clients while they are there: as the balancer, an operator or their own driver does it.

use std::cell::RefCell;

use dataplane::sim::Session;
use memory::sim;
use spec::DeviceSpec;

use crate::drawn;
use crate::world::{Any, Counts, Process, Scene, WAITS_NS};

/// A client tells of its rings.
pub fn bring(session: &mut Session, client: &RefCell<Any>, scene: &Scene) {
    let mut rings = client.borrow().front().rings();
    while !rings.is_empty() {
        let ring = rings.swap_remove(sim::pick(rings.len()));
        let number = ring.number;
        session.place(number, sim::pick(scene.drawn.channels as usize));
        session.set_ring(ring);
        session.enable(number, true);
        sim::tell(|| format!("queue {number} of {} starts", client.borrow().front().name));
    }
}

fn pick_queue(scene: &Scene) -> (usize, u16) {
    let number = sim::pick(scene.clients.len());
    let client = scene.clients[number].borrow();
    let lines = &client.front().lines;
    (number, lines[sim::pick(lines.len())].number)
}

/// A queue goes to another channel, as the balancer does it.
pub fn move_one(process: &mut Process, scene: &Scene, counts: &mut Counts) {
    let (number, queue) = pick_queue(scene);
    let at = sim::pick(process.house.channels());
    sim::tell(|| format!("queue {queue} of client{number} moves to channel {at}"));
    scene.unit.borrow_mut().shift(number);
    process.sessions[number].place(queue, at);
    scene.unit.borrow_mut().shift(number);
    counts.moves += 1;
}

/// Something changes under a client: its memory, a queue that is disabled for a while, what its adapter may have.
pub fn change_one(process: &mut Process, scene: &Scene) -> Result<(), String> {
    let Process { sessions, house } = process;
    let (number, queue) = pick_queue(scene);
    let session = &mut sessions[number];
    let what = sim::pick(5);
    if what == 4 {
        return renew(process, scene, number);
    }
    scene.unit.borrow_mut().shift(number);
    match what {
        0 => {
            sim::tell(|| format!("client{number} tells its memory anew"));
            let regions = scene.clients[number].borrow().front().memory.regions();
            session.set_memory(regions.expect("descriptors"))?;
        }
        1 => {
            sim::tell(|| format!("client{number} disables queue {queue} for a while"));
            session.enable(queue, false);
            (0..sim::pick(40)).for_each(|_| sim::others());
            session.enable(queue, true);
        }
        2 => session.reset_marks(),
        _ => {
            let mut spec = session.spec().clone();
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
            session.change(house, spec)?;
        }
    }
    scene.unit.borrow_mut().shift(number);
    Ok(())
}

/// A client goes and comes again, or its adapter is removed under it and made anew.
fn renew(process: &mut Process, scene: &Scene, number: usize) -> Result<(), String> {
    let Process { sessions, house } = process;
    let (session, client) = (&mut sessions[number], &scene.clients[number]);
    let removed = sim::once_in(2);
    sim::tell(|| format!("client{number} {}", if removed { "loses its adapter" } else { "goes" }));
    scene.unit.borrow_mut().leave(number);
    // What failed in passing is tried again after some time, the channel's mailbox too; elements of a port come back when others have waited.
    let port = scene.drawn.scsi.as_ref().is_some_and(|(_, port)| port.is_some());
    let hurries = removed && scene.drawn.faults.passing == 0 && !port;
    scene.hurry.set(hurries.then_some(0));
    session.leave(removed);
    if let Some(waited) = scene.hurry.take().filter(|waited| *waited > WAITS_NS) {
        return Err(format!("client{number}: the removal of its adapter waits {waited} ns"));
    }
    let said = client.borrow().front().says(true);
    session.come(house, said)?;
    bring(session, client, scene);
    scene.unit.borrow_mut().arrive(number);
    Ok(())
}
