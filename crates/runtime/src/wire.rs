//! Cap'n Proto encoding of a struct tree, as far as a worker configuration needs it:
//! one segment, structs, text, data, lists of text and lists of structs.
//!
//! Source: the Cap'n Proto encoding specification. The schema's slots are in `config.rs`.

/// What a pointer slot holds.
pub(crate) enum Slot<'a> {
    /// Text; the terminating zero is added here.
    Text(&'a str),
    /// Bytes.
    Data(&'a [u8]),
    /// A nested struct.
    Struct(Struct<'a>),
    /// A list of structs of one shape.
    Structs(Vec<Struct<'a>>),
    /// A list of texts.
    Texts(&'a [&'a str]),
}

/// A struct: its data words and its pointer slots.
pub(crate) struct Struct<'a> {
    data: Vec<u64>,
    slots: Vec<Option<Slot<'a>>>,
}

impl<'a> Struct<'a> {
    /// A struct with room for `data_words` words of data and `slot_count` pointers.
    pub(crate) fn new(data_words: usize, slot_count: usize) -> Struct<'a> {
        Struct {
            data: vec![0; data_words],
            slots: (0..slot_count).map(|_| None).collect(),
        }
    }

    /// Sets 16 bits at `bit` of the data section (enums and union tags).
    pub(crate) fn tag(mut self, bit: usize, value: u16) -> Struct<'a> {
        self.data[bit / 64] |= u64::from(value) << (bit % 64);
        self
    }

    /// Sets one flag.
    pub(crate) fn flag(mut self, bit: usize) -> Struct<'a> {
        self.data[bit / 64] |= 1 << (bit % 64);
        self
    }

    /// Fills pointer slot `index`.
    pub(crate) fn slot(mut self, index: usize, slot: Slot<'a>) -> Struct<'a> {
        self.slots[index] = Some(slot);
        self
    }

    fn words(&self) -> usize {
        self.data.len() + self.slots.len()
    }
}

/// The whole message: segment table, root pointer, tree.
pub(crate) fn message(root: &Struct<'_>) -> Vec<u8> {
    let mut segment = Segment { words: vec![0] };
    let at = segment.reserve(root.words());
    segment.words[0] = struct_pointer(0, at, root);
    segment.fill(at, root);
    let count = u32::try_from(segment.words.len()).expect("a configuration stays below 32 GiB");
    let mut bytes = Vec::with_capacity(8 + segment.words.len() * 8);
    bytes.extend_from_slice(&0u32.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    for word in &segment.words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes
}

struct Segment {
    words: Vec<u64>,
}

impl Segment {
    fn reserve(&mut self, words: usize) -> usize {
        let at = self.words.len();
        self.words.resize(at + words, 0);
        at
    }

    fn fill(&mut self, at: usize, value: &Struct<'_>) {
        self.words[at..at + value.data.len()].copy_from_slice(&value.data);
        for (index, slot) in value.slots.iter().enumerate() {
            if let Some(slot) = slot {
                self.point(at + value.data.len() + index, slot);
            }
        }
    }

    fn point(&mut self, from: usize, slot: &Slot<'_>) {
        match slot {
            Slot::Text(text) => self.blob(from, text.as_bytes(), 1),
            Slot::Data(bytes) => self.blob(from, bytes, 0),
            Slot::Struct(value) => {
                let at = self.reserve(value.words());
                self.words[from] = struct_pointer(from, at, value);
                self.fill(at, value);
            }
            Slot::Structs(values) => self.composite(from, values),
            Slot::Texts(texts) => {
                let at = self.reserve(texts.len());
                self.words[from] = list_pointer(from, at, 6, texts.len());
                for (index, text) in texts.iter().enumerate() {
                    self.blob(at + index, text.as_bytes(), 1);
                }
            }
        }
    }

    fn blob(&mut self, from: usize, bytes: &[u8], zeros: usize) {
        let length = bytes.len() + zeros;
        let at = self.reserve(length.div_ceil(8));
        self.words[from] = list_pointer(from, at, 2, length);
        for (index, chunk) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words[at + index] = u64::from_le_bytes(word);
        }
    }

    fn composite(&mut self, from: usize, values: &[Struct<'_>]) {
        let size = values.first().map_or(0, Struct::words);
        let at = self.reserve(1 + size * values.len());
        self.words[from] = list_pointer(from, at, 7, size * values.len());
        if let Some(first) = values.first() {
            self.words[at] = (values.len() as u64) << 2 | shape(first);
        }
        for (index, value) in values.iter().enumerate() {
            self.fill(at + 1 + index * size, value);
        }
    }
}

fn shape(value: &Struct<'_>) -> u64 {
    (value.data.len() as u64) << 32 | (value.slots.len() as u64) << 48
}

fn offset(from: usize, to: usize) -> u64 {
    ((to - from - 1) as u64) << 2
}

fn struct_pointer(from: usize, to: usize, value: &Struct<'_>) -> u64 {
    offset(from, to) | shape(value)
}

fn list_pointer(from: usize, to: usize, element: u64, count: usize) -> u64 {
    1 | offset(from, to) | element << 32 | (count as u64) << 35
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_struct_is_encoded_with_its_terminating_zero() {
        let root = Struct::new(1, 1).tag(16, 0x0102).slot(0, Slot::Text("hi"));
        let expected: Vec<u8> = [
            vec![0, 0, 0, 0, 4, 0, 0, 0],    // one segment of four words
            vec![0, 0, 0, 0, 1, 0, 1, 0],    // root: one data word, one pointer
            vec![0, 0, 2, 1, 0, 0, 0, 0],    // the tag
            vec![1, 0, 0, 0, 0x1a, 0, 0, 0], // list of three bytes
            vec![b'h', b'i', 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(message(&root), expected);
    }

    #[test]
    fn list_of_structs_carries_its_shape() {
        let one = || Struct::new(1, 0).flag(0);
        let root = Struct::new(0, 1).slot(0, Slot::Structs(vec![one(), one()]));
        let bytes = message(&root);
        let word = |index: usize| {
            u64::from_le_bytes(bytes[index * 8..][..8].try_into().expect("eight bytes"))
        };
        assert_eq!(word(2), 1 | 7 << 32 | 2 << 35);
        assert_eq!(word(3), 2 << 2 | 1 << 32);
        assert_eq!((word(4), word(5)), (1, 1));
    }
}
