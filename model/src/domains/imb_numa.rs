//! `imb_numa_nr`: how many tasks may crowd one NUMA group before another is used.

use super::raw::RawLevel;
use crate::profile::ImbNumaRule;

/// The value of the kernel's field at each level of a raw chain; 0 below the first level over the LLC, where it is never read.
#[doc(alias = "build_sched_domains")]
pub(super) fn imb_numa_nr(chain: &[RawLevel], rule: ImbNumaRule, online_nodes: usize) -> Vec<u32> {
    let mut values = vec![0; chain.len()];
    let over_llc = chain.windows(2).position(|pair| pair[0].flags.share_llc && !pair[1].flags.share_llc);
    let Some(first) = over_llc.map(|below| below + 1) else {
        return values;
    };
    let weight = |level: &RawLevel| level.span.len();
    let (llc, w) = (weight(&chain[first - 1]), weight(&chain[first]));
    let per_llc = w / llc;
    let ancestor =
        |has: fn(&RawLevel) -> bool| chain[first..].iter().find(|level| has(level)).map_or(w, weight);
    let (imb, span) = match rule {
        ImbNumaRule::None => return values,
        ImbNumaRule::V3 => ((llc >> 1).checked_div(per_llc * online_nodes).unwrap_or(0).max(1), usize::MAX),
        ImbNumaRule::V4 => (((llc * llc / w) >> 2).max(2), w),
        ImbNumaRule::V4PreferSibling => {
            (((llc * llc / w) >> 2).max(2), ancestor(|l| !l.flags.prefer_sibling))
        }
        ImbNumaRule::Llc25 => (if per_llc == 1 { w >> 2 } else { per_llc }, ancestor(|l| l.flags.numa)),
        ImbNumaRule::Llc12 => {
            (if per_llc == 1 { (w >> 3).max(1) } else { per_llc }, ancestor(|l| l.flags.numa))
        }
    };
    for (value, level) in values.iter_mut().zip(chain).skip(first) {
        let scaled = imb * (weight(level) / span).max(1);
        *value = u32::try_from(scaled).unwrap_or(u32::MAX);
    }
    values
}
