//! Finds and ends everything of a program: its own tree, and what left it.
//!
//! The warden is the parent of whatever loses its parent, so nothing gets away; the label tells
//! whose it was. What carries none that is held belongs to nobody, and is ended.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;

use super::super::frame::Word;
use super::super::label::label_of;
use super::super::proc::{line_of, subtree};
use super::super::signal::send;
use super::Keeper;

/// Rounds until what does not die is given up: some seconds.
const ROUNDS: u32 = 600;

impl Keeper {
    /// Asks everything of a program to end. What only wraps it is not asked: it would end at once,
    /// and everything with it, before anybody could say a last word.
    pub(super) fn terminate(&mut self, slot: u64) {
        let wrapper = self.held.get(&slot).filter(|held| held.is_wrapped).map(|held| held.pid);
        for pid in self.all_of(slot).into_iter().filter(|pid| Some(*pid) != wrapper) {
            self.signal(pid, Signal::SIGTERM);
        }
    }

    /// Kills everything of a program, again and again until nothing is left.
    pub(super) fn clear(&mut self, slot: u64) {
        let Some(held) = self.held.get_mut(&slot) else { return };
        if held.is_cleared {
            return self.say_cleared(slot, 0, 0);
        }
        held.clearing.get_or_insert(0);
        self.clear_slot(slot);
    }

    /// One round over all that is being killed.
    pub(super) fn clear_round(&mut self) {
        if self.held.values().all(|held| held.clearing.is_none()) {
            return;
        }
        self.bury_all();
        let clearing = self.held.iter().filter(|(_, held)| held.clearing.is_some());
        let slots: Vec<_> = clearing.map(|(slot, _)| *slot).collect();
        slots.into_iter().for_each(|slot| self.clear_slot(slot));
    }

    fn clear_slot(&mut self, slot: u64) {
        let living = self.all_of(slot);
        let killed = living.iter().filter(|pid| self.signal(**pid, Signal::SIGKILL)).count();
        let Some(held) = self.held.get_mut(&slot) else { return };
        let so_far = held.clearing.unwrap_or_default() + killed as u64;
        held.rounds += 1;
        // The program itself has to be reaped too, for its end to be told before this is. What runs
        // as another user, or waits in the kernel for ever, is given up: it must not hold up the rest.
        let is_over = living.is_empty() || held.rounds > ROUNDS;
        let is_cleared = is_over && held.end.is_some();
        (held.clearing, held.is_cleared) = ((!is_cleared).then_some(so_far), is_cleared);
        if is_cleared {
            self.say_cleared(slot, so_far, living.len() as u64);
        }
    }

    fn say_cleared(&mut self, slot: u64, killed: u64, left: u64) {
        self.say(Word::Cleared { slot, killed, left });
    }

    /// Whether something lives that a program started and left to us.
    pub(super) fn has_orphans(&self, slot: u64) -> bool {
        !self.orphans_of(slot).is_empty()
    }

    /// Every process of a program. One that has died counts until it is reaped, so that nothing is
    /// to be seen of it when it is gone.
    fn all_of(&self, slot: u64) -> BTreeSet<i32> {
        let mut all = self.orphans_of(slot);
        if let Some(held) = self.held.get(&slot).filter(|held| held.end.is_none()) {
            all.extend(subtree(held.pid));
        }
        all
    }

    /// What a program left to us, with all below it. What nobody left is ended on the way.
    fn orphans_of(&self, slot: u64) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        let orphans = self.children.all().into_iter().filter(|pid| !self.by_pid.contains_key(pid));
        for orphan in orphans {
            match self.owner_of(orphan) {
                Some(owner) if owner == slot => found.extend(subtree(orphan)),
                Some(_) => {}
                None => self.kill_line(orphan),
            }
        }
        found
    }

    fn owner_of(&self, pid: i32) -> Option<u64> {
        let label = label_of(pid)?.0;
        self.held.iter().find(|(_, held)| held.terms.label == label).map(|(slot, _)| *slot)
    }

    /// Kills a process and all below it.
    pub(super) fn kill_line(&self, root: i32) {
        for pid in subtree(root) {
            self.signal(pid, Signal::SIGKILL);
        }
    }

    /// Only what descends from this process is ever meant.
    fn signal(&self, pid: i32, signal: Signal) -> bool {
        pid != self.me && send(pid, signal, || line_of(pid).contains(&self.me))
    }
}
