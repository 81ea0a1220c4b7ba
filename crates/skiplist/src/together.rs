//! Searches for several keys at once. In a list that is larger than the processor's caches a search
//! waits for memory at almost every step. These ask for the memory of the next step and leave the
//! turn to the others: so the waits of all go on at the same time.
//!
//! Owns: the turns. Never does: take another step than the search for one key does.

use crate::list::{Entry, HEIGHT_MAX, KeyCompare, Path, SearchKey, SkipList, Trace};
use crate::node::{NodeRef, UNKNOWN};

/// The most searches at once: a processor waits for about as many lines of memory.
const TOGETHER_MAX: usize = 16;

/// A search under way.
struct Search<'a, T> {
    target: SearchKey<'a>,
    trace: T,
    /// The last node known to be before the target.
    place: NodeRef<'a>,
    level: usize,
    /// The nodes passed on this level.
    moves: usize,
    /// The node after `place`, which is compared next: its memory was asked for.
    ahead: Option<NodeRef<'a>>,
    /// The node that ended the level above, so that it is not compared again.
    bound: Option<NodeRef<'a>>,
}

/// The end of a step.
enum SearchStep<'a> {
    /// It waits for memory.
    Waits,
    /// The first node that is not before the target, if there is one.
    Ends(Option<NodeRef<'a>>),
}

impl<'a, T: Trace<'a>> Search<'a, T> {
    /// Leaves this level for the one below; returns whether there is none.
    #[inline(always)]
    fn leave_level(&mut self) -> bool {
        self.trace.set(self.level, self.place, self.moves);
        self.moves = 0;
        let was_last = self.level == 0;
        self.level = self.level.saturating_sub(1);
        was_last
    }

    #[inline(always)]
    fn pass(&mut self, node: NodeRef<'a>) {
        self.place = node;
        self.moves += 1;
    }
}

impl<C: KeyCompare> SkipList<C> {
    /// Does for each key what [`SkipList::seek`] does, and gives `found` its number and its entry.
    pub fn seek_many<'a>(
        &'a self,
        keys: &[&'a [u8]],
        trailer: u64,
        mut found: impl FnMut(usize, Option<Entry<'a>>),
    ) {
        for (group, keys) in keys.chunks(TOGETHER_MAX).enumerate() {
            let begin = |key: &&'a [u8]| self.begin(key, trailer, ());
            let mut searches: Vec<_> = keys.iter().map(begin).collect();
            self.end_all(&mut searches, |place, node| {
                found(group * TOGETHER_MAX + place, node.map(Entry::of));
            });
        }
    }

    /// Inserts entries (key, trailer, value) as [`SkipList::insert`] does one by one.
    ///
    /// # Panics
    /// If a key or a value is 4 GiB or longer.
    pub fn insert_many(&self, entries: &[(&[u8], u64, &[u8])]) {
        if let [(key, trailer, value)] = entries {
            return self.insert(key, *trailer, value);
        }
        for entries in entries.chunks(TOGETHER_MAX) {
            if self.adjoins(entries) {
                self.insert_run(entries);
            } else {
                self.insert_scattered(entries);
            }
        }
    }

    /// Whether entries are ascending, and all of them belong before or behind all of the list.
    fn adjoins(&self, entries: &[(&[u8], u64, &[u8])]) -> bool {
        let order = self.comparator();
        let (Some((least, ..)), Some((greatest, ..))) = (entries.first(), entries.last()) else {
            return true;
        };
        entries.windows(2).all(|pair| order.compare(pair[0].0, pair[1].0).is_lt())
            && (self.first().is_none_or(|first| order.compare(greatest, first.key()).is_lt())
                || self.last().is_none_or(|last| order.compare(last.key(), least).is_lt()))
    }

    /// Inserts ascending entries, each right behind the one before it.
    fn insert_run(&self, entries: &[(&[u8], u64, &[u8])]) {
        let mut path = Path::new(self.head());
        for (place, (key, trailer, value)) in entries.iter().enumerate() {
            let target = self.target(key, *trailer);
            if place == 0 {
                self.search(&target, &mut path);
            }
            let height = self.insert_at(&target, value, &mut path);
            path.continue_to_new(height);
        }
    }

    /// Inserts entries that are searched for at once.
    fn insert_scattered(&self, entries: &[(&[u8], u64, &[u8])]) {
        let mut searches = Vec::with_capacity(entries.len());
        for (key, trailer, _) in entries {
            searches.push(self.begin(key, *trailer, Path::new(self.head())));
        }
        self.end_all(&mut searches, |_, _| {});
        let mut last: Option<([NodeRef<'_>; HEIGHT_MAX], Path<'_>)> = None;
        for (search, (_, _, value)) in searches.into_iter().zip(entries) {
            let Search { target, trace: mut path, .. } = search;
            let places = path.places;
            // Of entries that belong to one place each begins at the one before it, and not where
            // its search ended.
            if let Some((last_places, last_path)) = &last
                && last_places[0] == places[0]
                && self.precedes(last_path.places[0], &target)
            {
                for level in 0..HEIGHT_MAX {
                    if last_places[level] == places[level] {
                        path.places[level] = last_path.places[level];
                        path.moves[level] = last_path.moves[level];
                    }
                }
            }
            let height = self.insert_at(&target, value, &mut path);
            path.continue_to_new(height);
            last = Some((places, path));
        }
    }

    fn begin<'a, T>(&'a self, key: &'a [u8], trailer: u64, trace: T) -> Search<'a, T> {
        Search {
            target: self.target(key, trailer),
            trace,
            place: self.head(),
            level: self.height() - 1,
            moves: 0,
            ahead: None,
            bound: None,
        }
    }

    /// Takes turns until all searches have ended.
    fn end_all<'a, T: Trace<'a>>(
        &'a self,
        searches: &mut [Search<'a, T>],
        mut ended: impl FnMut(usize, Option<NodeRef<'a>>),
    ) {
        debug_assert!(searches.len() <= TOGETHER_MAX);
        let mut running: u32 = (1 << searches.len()) - 1;
        while running > 0 {
            let mut turn = running;
            while turn > 0 {
                let place = turn.trailing_zeros() as usize;
                turn &= turn - 1;
                if let SearchStep::Ends(node) = self.step(&mut searches[place]) {
                    running &= !(1 << place);
                    ended(place, node);
                }
            }
        }
    }

    /// Goes on with a search until it needs memory that it has not asked for.
    #[inline(always)]
    fn step<'a, T: Trace<'a>>(&'a self, search: &mut Search<'a, T>) -> SearchStep<'a> {
        if let Some(next) = search.ahead.take() {
            if self.passes_ahead(search, next) {
                search.pass(next);
            } else {
                search.bound = Some(next);
                if search.leave_level() {
                    return SearchStep::Ends(Some(next));
                }
            }
        }
        loop {
            let (place, level) = (search.place, search.level);
            // By hints where there are any, as `SkipList::search` does.
            let hint = match level > 0 && search.target.window.is_some() {
                true => place.link(level).hint(),
                false => UNKNOWN,
            };
            let is_behind = hint > search.target.fragment && hint != UNKNOWN;
            let next = if is_behind { None } else { place.next(level) };
            let Some(next) = next else {
                if search.leave_level() {
                    return SearchStep::Ends(None);
                }
                continue;
            };
            if hint < search.target.fragment {
                search.pass(next);
                next.prefetch_links(level);
                return SearchStep::Waits;
            }
            if search.bound == Some(next) {
                if search.leave_level() {
                    return SearchStep::Ends(Some(next));
                }
                continue;
            }
            next.prefetch_links(level);
            next.prefetch_bytes(128);
            search.ahead = Some(next);
            return SearchStep::Waits;
        }
    }

    /// Whether the next node, whose memory has come, is before the target.
    #[inline(always)]
    fn passes_ahead<'a, T>(&'a self, search: &Search<'a, T>, next: NodeRef<'a>) -> bool {
        if search.level > 0
            && let Some(window) = &search.target.window
        {
            let link = search.place.link(search.level);
            if link.hint() == UNKNOWN {
                link.lower_hint(window.fragment(next.key()));
            }
        }
        self.precedes(next, &search.target)
    }
}
