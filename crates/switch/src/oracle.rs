//! The switch written once more, slowly: whole frames, ordered maps, nothing kept that could be worked out.

use std::collections::BTreeMap;

use crate::{Mac, PortSpec, Reason, Tagging, Vid};

/// What each destination gets; with true, as a mirrored copy.
pub(crate) type Outcome = Result<BTreeMap<(u16, bool), Vec<u8>>, Reason>;

pub(crate) struct Oracle {
    pub(crate) ports: BTreeMap<u16, PortSpec>,
    /// Where and when each station was last heard.
    heard: BTreeMap<(u16, Mac), (u16, u64)>,
    age_s: u64,
    macs_max: usize,
}

impl Oracle {
    pub(crate) fn new(age_s: u64, macs_max: usize) -> Oracle {
        Oracle { ports: BTreeMap::new(), heard: BTreeMap::new(), age_s, macs_max }
    }

    pub(crate) fn set_port(&mut self, id: u16, spec: PortSpec) {
        self.forget(id);
        self.ports.insert(id, spec);
    }

    pub(crate) fn forget(&mut self, id: u16) {
        self.heard.retain(|_, (port, _)| *port != id);
    }

    pub(crate) fn expire(&mut self, now_s: u64) {
        self.heard.retain(|_, (_, at)| *at + self.age_s > now_s);
    }

    pub(crate) fn stations(&self, id: u16) -> usize {
        self.heard.values().filter(|(port, _)| *port == id).count()
    }

    pub(crate) fn send(&mut self, now_s: u64, from: u16, frame: &[u8]) -> Outcome {
        let spec = self.ports[&from].clone();
        let (to, source) = (mac(&frame[0..6]), mac(&frame[6..12]));
        if spec.mirror_only {
            return Err(Reason::MirrorOnly);
        }
        if source.0[0] % 2 == 1 || source.0 == [0; 6] {
            return Err(Reason::MacInvalidSource);
        }
        if to.0[..5] == [1, 0x80, 0xc2, 0, 0] && to.0[5] <= 15 {
            return Err(Reason::MacIeeeMacControl);
        }
        let (tag, bare) = untag(&spec, frame);
        let vid = match tag {
            Some(tci) if tci % 4096 != 0 => tci % 4096,
            _ => spec.pvid.map(Vid::get).ok_or(Reason::VlanFilter)?,
        };
        if !member(&spec, vid) {
            return Err(Reason::VlanFilter);
        }
        let own = spec.guard.macs.contains(&source);
        let others = self.ports.values().any(|port| port.guard.macs.contains(&source));
        if !own && (others || !spec.guard.macs.is_empty()) {
            return Err(Reason::SpoofMac);
        }
        self.hear(now_s, from, vid, source, spec.macs_max);
        let mut targets: Vec<u16> = self.ports.keys().copied().collect();
        targets.retain(|id| *id != from && member(&self.ports[id], vid));
        targets.retain(|id| !self.ports[id].mirror_only);
        let private = |id: &u16| spec.private && self.ports[id].private;
        let home = self.heard.get(&(vid, to)).map(|(port, _)| *port).or(self.owner(to, vid));
        let home = home.filter(|id| member(&self.ports[id], vid) && !self.ports[id].mirror_only);
        match home {
            Some(home) if home == from => return Err(Reason::SamePort),
            Some(home) if private(&home) => return Err(Reason::PrivatePort),
            Some(home) => targets = vec![home],
            None => targets.retain(|id| !private(id)),
        }
        if targets.is_empty() {
            return Err(Reason::NoTxTarget);
        }
        let mut out = BTreeMap::new();
        for id in &targets {
            out.insert((*id, false), tagged(&self.ports[id], vid, tag, &bare));
        }
        for id in targets.iter().chain([&from]) {
            if let Some(watcher) = self.ports[id].mirror
                && self.ports.get(&watcher.0).is_some_and(|spec| spec.mirror_only)
            {
                out.insert((watcher.0, true), frame.to_vec());
            }
        }
        Ok(out)
    }

    fn owner(&self, mac: Mac, vid: u16) -> Option<u16> {
        let owns = |spec: &PortSpec| spec.guard.macs.contains(&mac) && member(spec, vid);
        self.ports.iter().find(|(_, spec)| owns(spec)).map(|(id, _)| *id)
    }

    fn hear(&mut self, now_s: u64, from: u16, vid: u16, source: Mac, quota: usize) {
        let before = self.heard.get(&(vid, source)).copied();
        let fits = match before {
            Some((port, _)) if port == from => true,
            Some(_) => self.stations(from) < quota,
            None => self.stations(from) < quota && self.heard.len() < self.macs_max,
        };
        if fits {
            self.heard.insert((vid, source), (from, now_s));
        }
    }
}

fn mac(bytes: &[u8]) -> Mac {
    Mac(bytes.try_into().expect("six bytes"))
}

fn member(spec: &PortSpec, vid: u16) -> bool {
    let Some(vid) = Vid::new(vid) else { return false };
    spec.pvid == Some(vid) || (spec.vids.has(vid) && spec.tagging != Tagging::None)
}

/// The port's own tag and the frame without it.
fn untag(spec: &PortSpec, frame: &[u8]) -> (Option<u16>, Vec<u8>) {
    let own: &[u8] = match spec.tagging {
        Tagging::Customer => &[0x81, 0x00],
        Tagging::Service => &[0x88, 0xa8],
        Tagging::None => return (None, frame.to_vec()),
    };
    if &frame[12..14] != own {
        return (None, frame.to_vec());
    }
    let tci = u16::from_be_bytes([frame[14], frame[15]]);
    (Some(tci), [&frame[..12], &frame[16..]].concat())
}

fn tagged(spec: &PortSpec, vid: u16, came: Option<u16>, bare: &[u8]) -> Vec<u8> {
    let tpid = match spec.tagging {
        _ if spec.pvid.map(Vid::get) == Some(vid) => return bare.to_vec(),
        Tagging::Customer => [0x81, 0x00],
        Tagging::Service => [0x88, 0xa8],
        Tagging::None => return bare.to_vec(),
    };
    let tci = came.unwrap_or(0) / 4096 * 4096 + vid;
    [&bare[..12], &tpid, &tci.to_be_bytes(), &bare[12..]].concat()
}
