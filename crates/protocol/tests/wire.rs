//! What is on the wire: messages as the first data planes of this version of the messages wrote them. They must be understood, and what
//! has no newer field must look the same, or the version is another one.

use protocol::message::{
    AdapterSpec, BlockSpec, CacheMode, CommandSpec, DelaySpec, DeviceSpec, FaultSpec, FileSpec,
    Initiator, LimitSpec, NullSpec, Placement, RamSpec, Request, ScsiSpec, SocketRole, TargetSpec,
    UnitSpec, VERSION, VolumeSpec, WaitMode,
};
use protocol::socket::{FRAME_BYTES_MAX, decode, encode};

const FILE: &str = "\
    a16a7075745f766f6c756d65a8646e616d656176646b696e64a16466696c65a46470617468622f64656361636865666469726563746663\
    7265617465f56b707265616c6c6f63617465f56562797465731910006a626c6f636b5f73697a6519020069726561645f6f6e6c79f5656c\
    696d6974a464696f7073016a696f70735f6275727374026b62797465735f7065725f73036b62797465735f6275727374046564656c6179\
    a4666d696e5f757301666d61785f75730265646570746803647365656404656661756c74a76e726561645f6572726f725f70706d016f77\
    726974655f6572726f725f70706d026e746f726e5f77726974655f70706d0368736c6f775f70706d0467736c6f775f757305696261645f\
    72616e6765820607647365656408";
const RAM: &str = "\
    a16a7075745f766f6c756d65a8646e616d656176646b696e64a16372616da16470617468622f72656279746573f66a626c6f636b5f7369\
    7a6519100069726561645f6f6e6c79f4656c696d6974f66564656c6179f6656661756c74f6";
const NULL: &str = "\
    a16a7075745f766f6c756d65a8646e616d656176646b696e64a1646e756c6ca1697a65726f5f66696c6cf5656279746573f66a626c6f63\
    6b5f73697a6519100069726561645f6f6e6c79f4656c696d6974f66564656c6179f6656661756c74f6";
const UNIT: &str = "\
    a1687075745f756e6974ab646e616d65617566766f6c756d656176646b696e64646469736b6676656e646f7261566770726f6475637461\
    50687265766973696f6e61526673657269616c6153636e61610369726561645f6f6e6c79f5647468696ef5646b656570622f6b";
const BLOCK: &str = "\
    a16b7075745f61646170746572ac646e616d65616166736f636b6574622f736b736f636b65745f726f6c6566636c69656e746b736f636b\
    65745f6d6f64651901b06671756575657304686368616e6e656c73026a71756575655f73697a651880677365675f6d6178187e64776169\
    7464706f6c6c69706c6163656d656e74667370726561646877697468686f6c6481636c6f6766646576696365a165626c6f636ba566766f\
    6c756d6561766673657269616c615369726561645f6f6e6c79f56b77726974655f6361636865f46764697363617264f5";
const SCSI: &str = "\
    a16b7075745f61646170746572ac646e616d65616166736f636b6574622f736b736f636b65745f726f6c6566636c69656e746b736f636b\
    65745f6d6f64651901b06671756575657304686368616e6e656c73026a71756575655f73697a651880677365675f6d6178187e64776169\
    7464706f6c6c69706c6163656d656e74667370726561646877697468686f6c6481636c6f6766646576696365a16473637369a469696e69\
    746961746f72a1626663a1647777706e09677461726765747381a462696401647777706e0264706f727402646c756e73a103617568636f\
    6d6d616e6473a66d6e756d5f636d645f656c656d731904006f6e756d5f73705f636d645f656c656d1902006e6e756d5f6c6f63616c5f63\
    6d6473056c627566735f7065725f636d640a6b71756575655f646570746818406e6d61785f786665725f62797465731a00100000656c69\
    6d6974a464696f7073016a696f70735f6275727374026b62797465735f7065725f73036b62797465735f627572737404";

fn limit() -> LimitSpec {
    LimitSpec { iops: 1, iops_burst: 2, bytes_per_s: 3, bytes_burst: 4, ..LimitSpec::default() }
}

fn file() -> VolumeSpec {
    let cache = CacheMode::Direct;
    let file = FileSpec { cache, create: true, preallocate: true, ..FileSpec::new("/d") };
    VolumeSpec {
        bytes: Some(4096),
        read_only: true,
        limit: Some(limit()),
        delay: Some(DelaySpec { min_us: 1, max_us: 2, depth: 3, seed: 4, ..Default::default() }),
        fault: Some(FaultSpec {
            read_error_ppm: 1,
            write_error_ppm: 2,
            torn_write_ppm: 3,
            slow_ppm: 4,
            slow_us: 5,
            bad_range: Some((6, 7)),
            seed: 8,
            ..FaultSpec::default()
        }),
        ..VolumeSpec::new("v", file)
    }
}

fn unit() -> UnitSpec {
    let text = str::to_owned;
    UnitSpec {
        name: text("u"),
        vendor: text("V"),
        product: text("P"),
        revision: text("R"),
        serial: text("S"),
        read_only: true,
        keep: Some("/k".into()),
        ..UnitSpec::disk("v", 3)
    }
}

fn adapter(device: impl Into<DeviceSpec>) -> AdapterSpec {
    AdapterSpec {
        socket_role: SocketRole::Client,
        queues: 4,
        channels: 2,
        queue_size: 128,
        seg_max: 126,
        wait: WaitMode::Poll,
        placement: Placement::Spread,
        withhold: vec!["log".to_owned()],
        ..AdapterSpec::new("a", "/s", device)
    }
}

fn scsi() -> ScsiSpec {
    let luns = [(3, "u".to_owned())].into();
    let target = TargetSpec { id: 1, wwpn: Some(2), port: 2, luns };
    let commands = CommandSpec::default();
    let scsi = ScsiSpec::new(Initiator::Fc { wwpn: 9 }, vec![target]);
    ScsiSpec { commands, limit: Some(limit()), ..scsi }
}

#[test]
fn what_the_first_of_this_version_wrote_is_understood_and_written() {
    assert_eq!(VERSION, 2, "record the messages of the new version here");
    let large = |kind| VolumeSpec { block_size: 4096, ..kind };
    let disk = BlockSpec { serial: "S".into(), read_only: true, ..BlockSpec::on("v") };
    let disk = BlockSpec { write_cache: false, ..disk };
    for (recorded, request) in [
        (FILE, Request::PutVolume(file())),
        (RAM, Request::PutVolume(large(VolumeSpec::new("v", RamSpec::new("/r"))))),
        (NULL, Request::PutVolume(large(VolumeSpec::new("v", NullSpec { zero_fill: true })))),
        (UNIT, Request::PutUnit(unit())),
        (BLOCK, Request::PutAdapter(adapter(disk))),
        (SCSI, Request::PutAdapter(adapter(scsi()))),
    ] {
        let digits = recorded.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let recorded: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        assert_eq!(decode::<Request>(&recorded).unwrap(), request);
        assert_eq!(encode(&request, FRAME_BYTES_MAX).unwrap()[4..], recorded, "{request:?}");
    }
}
