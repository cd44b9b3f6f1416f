//! `trunkline pool rescue`: what is left of a pool that does not open any more.

use crate::cli::Global;
use crate::exit::Failure;
use crate::output::{print, table};
use control::error::{ApiError, Code};
use dataplane::Rescued;
use fabric::units::format_size;
use serde_json::json;
use std::path::PathBuf;

/// Bytes of a chunk.
const CHUNK: u64 = 64 << 20;

/// Looks at the PVs, and writes what it takes if that is wanted.
pub(crate) fn rescue(global: &Global, pvs: &[PathBuf], write: bool) -> Result<(), Failure> {
    let found = dataplane::rescue(pvs, write).map_err(|error| {
        let refused = ApiError::new(Code::Failed, error.what);
        Failure::from(error.help.into_iter().fold(refused, |refused, help| refused.help(help)))
    })?;
    let lus = found.lus.iter().map(|lu| {
        let [size, used] = [lu.chunks, lu.mapped].map(|chunks| u64::from(chunks) * CHUNK);
        json!({ "number": lu.lu, "size_bytes": size, "used_bytes": used, "guessed": lu.guessed, "layer": lu.layer })
    });
    let all = json!({
        "uuid": found.pool.to_string(), "lus": lus.collect::<Vec<_>>(), "found": found.found,
        "blocks": found.writes, "written": write,
    });
    print(global, &all, |_| page(&found, write))
}

fn page(found: &Rescued, write: bool) -> String {
    let mut page = format!("pool {}", found.pool);
    let rows = found.lus.iter().map(|lu| {
        let [size, used] =
            [lu.chunks, lu.mapped].map(|chunks| format_size(u64::from(chunks) * CHUNK));
        let known = match (lu.layer, lu.guessed) {
            (true, _) => "a layer of snapshots, as it lies there",
            (false, true) => "by its chunks alone: it may have been larger",
            (false, false) => "",
        };
        vec![lu.lu.to_string(), size, used, known.to_owned()]
    });
    page += &format!("\n\n{}", table(&["LU", "SIZE", "USED", "KNOWN"], &[0, 1, 2], rows.collect()));
    if !found.found.is_empty() {
        page += "\n\nfound:";
    }
    for one in &found.found {
        page += &format!("\n  {one}");
    }
    page += &match (found.writes, write) {
        (0, _) => "\n\nnothing is to be written: it opens as it is".to_owned(),
        (blocks, false) => format!(
            "\n\n{blocks} blocks of the pool would be written, and nothing has been: --write does so"
        ),
        (blocks, true) => format!("\n\n{blocks} blocks of the pool were written: it can be opened"),
    };
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::RescuedLu;

    #[test]
    fn what_is_left_of_a_pool_is_told_before_anything_is_written() {
        let lu = |lu, guessed, layer| RescuedLu { lu, chunks: 16, mapped: 4, guessed, layer };
        let found = Rescued {
            pool: dataplane::Uuid([0xab; 16]),
            lus: vec![lu(1, false, false), lu(2, true, false), lu(2003, true, true)],
            found: vec!["page 0 of the LUs is lost".to_owned()],
            writes: 6,
        };
        insta::assert_snapshot!("pool_rescued", page(&found, false));
        assert!(
            page(&found, true).ends_with("6 blocks of the pool were written: it can be opened")
        );
        assert!(page(&Rescued { writes: 0, ..found }, true).ends_with("it opens as it is"));
    }
}
