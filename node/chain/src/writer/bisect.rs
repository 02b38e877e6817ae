//! Finds the rows that spoil a batch with few questions: ask about all, then about halves of what failed.

use std::future::Future;

/// Splits `rows` into those that pass `probe` together and those that fail it alone, each with its reason.
///
/// With one bad row among n this asks about 2·log₂ n times. Should good halves fail when put together, the
/// order decides which of their rows are kept, and the next batch takes the others.
///
/// # Errors
/// The first error of `probe` itself, as opposed to the reason it finds.
pub(super) async fn bisect<T, F, E>(
    rows: Vec<T>,
    probe: &impl Fn(Vec<T>) -> F,
) -> Result<(Vec<T>, Vec<(T, String)>), E>
where
    T: Clone,
    F: Future<Output = Result<Option<String>, E>>,
{
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let mut open = vec![rows];
    while let Some(part) = open.pop() {
        if part.is_empty() {
            continue;
        }
        match (probe(part.clone()).await?, part.as_slice()) {
            (None, _) => good.extend(part),
            (Some(reason), [row]) => bad.push((row.clone(), reason)),
            (Some(_), _) => {
                let (left, right) = part.split_at(part.len() / 2);
                // The stack is last in, first out: the left half stays first.
                open.push(right.to_vec());
                open.push(left.to_vec());
            }
        }
    }
    Ok((good, bad))
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible};

    use proptest::prelude::*;

    use super::*;

    fn run(rows: Vec<u32>, is_bad: impl Fn(u32) -> bool) -> (Vec<u32>, Vec<u32>, usize) {
        let asked = Cell::new(0);
        let probe = |part: Vec<u32>| {
            asked.set(asked.get() + 1);
            let reason = part.iter().any(|row| is_bad(*row)).then(|| "bad".to_owned());
            async move { Ok::<_, Infallible>(reason) }
        };
        let (good, bad) = futures::executor::block_on(bisect(rows, &probe)).unwrap();
        (good, bad.into_iter().map(|(row, _)| row).collect(), asked.get())
    }

    #[test]
    fn a_good_batch_is_asked_about_once() {
        assert_eq!(run((0..100).collect(), |_| false), ((0..100).collect(), vec![], 1));
        assert_eq!(run(vec![], |_| true), (vec![], vec![], 0));
    }

    #[test]
    fn one_bad_row_among_a_hundred_is_found_with_few_questions() {
        let (good, bad, asked) = run((0..100).collect(), |row| row == 37);
        assert_eq!((good.len(), bad), (99, vec![37]));
        assert!(asked <= 15, "{asked}");
    }

    proptest! {
        #[test]
        fn exactly_the_bad_rows_are_left_out_and_the_order_stays(bad: Vec<bool>) {
            let rows: Vec<u32> = (0..u32::try_from(bad.len()).unwrap()).collect();
            let (good, refused, _) = run(rows.clone(), |row| bad[row as usize]);
            let split = |wanted: bool| rows.iter().copied().filter(|r| bad[*r as usize] == wanted).collect::<Vec<_>>();
            prop_assert_eq!(good, split(false));
            prop_assert_eq!(refused, split(true));
        }
    }
}
