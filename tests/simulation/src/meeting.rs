//! Filling the tables: each node meets as many others as its table has places for, through the machine's own inputs. Only
//! the network between them is left out, which takes most of the time of a real join.

use std::ops::Range;

use farthing_directory::{Input, K, Key, Now, Output, wire::Request, wire::Response};

use crate::{people::START_SECS, world::World};

/// Peers of a bucket that are met before its last places stay empty, because of too many of one network.
const MET_MAX: usize = 2 * K;

/// Lets everybody who is there meet some of everybody in each bucket, the liars first if they `came_first`.
pub(crate) fn meet(world: &mut World, came_first: bool) {
    let there: Vec<(Key, usize)> =
        world.sorted().iter().copied().filter(|(_, node)| world.nodes[*node].is_there).collect();
    for at in 0..there.len() {
        let mut begins = 0..there.len();
        for shared in 0.. {
            let inner = sharing(&there, at, shared + 1, &begins);
            let bucket = (begins.start..inner.start).chain(inner.end..begins.end);
            let mut others: Vec<usize> = bucket.map(|other| there[other].1).collect();
            draw(world, &mut others, came_first);
            let full = world.nodes[there[at].1].directory.peers() + K;
            for other in others.into_iter().take(MET_MAX) {
                meet_one(world, there[at].1, other);
                if world.nodes[there[at].1].directory.peers() >= full {
                    break;
                }
            }
            begins = inner;
            if begins.len() <= 1 {
                break;
            }
        }
    }
}

/// Those within `range` that share at least so many bits with the one at `at`.
fn sharing(all: &[(Key, usize)], at: usize, bits: u32, range: &Range<usize>) -> Range<usize> {
    let own = all[at].0;
    let shares = |(key, _): &(Key, usize)| own.distance(*key).shared_bits() >= bits;
    let start = range.start + all[range.start..at].partition_point(|other| !shares(other));
    let end = at + all[at..range.end].partition_point(shares);
    start..end
}

/// Brings some to the front by lot.
fn draw(world: &mut World, others: &mut [usize], came_first: bool) {
    for n in 0..others.len().min(MET_MAX) {
        let drawn = n + world.dice.index(others.len() - n);
        others.swap(n, drawn);
    }
    if came_first {
        others.sort_by_key(|other| !world.nodes[*other].is_liar);
    }
}

fn meet_one(world: &mut World, node: usize, other: usize) {
    let now = Now { since: std::time::Duration::ZERO, unix_secs: START_SECS };
    let contact = world.nodes[other].person.contact.clone();
    let key = contact.key();
    let directory = &mut world.nodes[node].directory;
    let mut outputs = directory.handle(now, Input::Connected(contact));
    while let Some(output) = outputs.pop() {
        if let Output::Ask { id, request, .. } = output {
            let response = match request {
                Request::GetValue { .. } => Response::GetValue { found: None, closer: Vec::new() },
                _ => Response::FindNode { closer: Vec::new() },
            };
            outputs.extend(directory.handle(now, Input::Answer(id, response)));
        }
    }
    directory.handle(now, Input::Disconnected(key));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dice, people::Person};

    fn world(count: u32, liars: usize, came_first: bool) -> World {
        let mut dice = Dice::new(1);
        let people = (0..count).map(|n| Person::new(n, &mut dice)).collect();
        let mut world = World::new(people, |_| true, dice);
        world.nodes.iter_mut().take(liars).for_each(|node| node.is_liar = true);
        meet(&mut world, came_first);
        world
    }

    #[test]
    fn each_knows_as_many_of_each_bucket_as_there_is_room_for() {
        let world = world(500, 0, false);
        for (key, node) in world.sorted() {
            let mut sizes = [0_usize; 256];
            for (other, _) in world.sorted().iter().filter(|(other, _)| other != key) {
                sizes[key.distance(*other).shared_bits() as usize] += 1;
            }
            let most: usize = sizes.iter().map(|size| (*size).min(K)).sum();
            let known = world.nodes[*node].directory.peers();
            assert!(known <= most && known + 5 >= most, "{known} of {most}");
        }
    }
}
