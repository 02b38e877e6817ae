//! Leaves parts out of what breaks something, as long as the rest breaks it as well.

/// Returns the shortest list that is found for which `breaks` is true, given one for which it is. First halves are left
/// out, then ever smaller parts.
pub fn shortest<T: Clone>(whole: &[T], mut breaks: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut best = whole.to_vec();
    let mut part = best.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < best.len() {
            let end = (at + part).min(best.len());
            let shorter = [&best[..at], &best[end..]].concat();
            if breaks(&shorter) {
                best = shorter;
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    best
}
