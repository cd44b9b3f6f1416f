//! In which language a report is.
//!
//! The commands print headings in the language of the session. Readers know the English ones; a report in another
//! language is refused by name, because half of its lines would be missed. Words are matched without their accents,
//! which get lost on the way often enough; two different words decide.

use std::sync::LazyLock;

/// The language and the words that headings of these reports have in it.
const WORDS: &[(&str, &[&str])] = &[
    (
        "German",
        &[
            "anzahl",
            "sekunden",
            "zeit",
            "bericht",
            "ethernet-statistik",
            "adaptertyp",
            "systemkonfiguration",
            "seit",
            "zurucksetzen",
            "letztem",
            "letzten",
            "pakete",
            "empfangene",
            "ubertragene",
            "einheitentyp",
            "geratetyp",
            "eingabeanforderungen",
            "ausgabeanforderungen",
            "eingabebytes",
            "ausgabebytes",
            "seriennummer",
            "partitionsname",
            "knotenname",
            "modus",
            "typ",
            "fehler",
            "statistik",
            "verfugbar",
            "ausgabe",
            "eingabe",
            "beschreibung",
            "wert",
            "attribut",
            "wahr",
            "falsch",
            "steuerungsanforderungen",
            "ubertragung",
            "empfang",
            "laufwerke",
            "pfade",
            "platten",
            "lesen",
            "schreiben",
            "warteschlange",
            "client-partitions-id",
            "physische",
            "position",
            "zieleinheit",
            "sicherungseinheit",
            "einheit",
            "gespiegelt",
            "angemeldet",
            "anschlusse",
        ],
    ),
    (
        "French",
        &[
            "nombre",
            "secondes",
            "depuis",
            "rapport",
            "statistiques",
            "reinitialisation",
            "derniere",
            "paquets",
            "erreurs",
            "recus",
            "transmis",
            "unite",
            "systeme",
            "adresse",
            "materielle",
            "demandes",
            "octets",
            "entree",
            "sortie",
            "ecoule",
            "temps",
            "numero",
            "serie",
            "vrai",
            "faux",
            "noeud",
            "unites",
            "disques",
            "chemins",
            "lecture",
            "ecriture",
            "file",
            "attente",
            "peripherique",
            "emplacement",
            "physique",
            "etat",
            "disponible",
            "miroir",
            "connectes",
        ],
    ),
    (
        "Spanish",
        &[
            "segundos",
            "desde",
            "informe",
            "estadisticas",
            "ultimo",
            "restablecimiento",
            "paquetes",
            "errores",
            "recibidos",
            "transmitidos",
            "dispositivo",
            "direccion",
            "tiempo",
            "transcurrido",
            "entrada",
            "salida",
            "solicitudes",
            "configuracion",
            "sistema",
            "verdadero",
            "falso",
            "nodo",
            "recuento",
        ],
    ),
    (
        "Italian",
        &[
            "secondi",
            "rapporto",
            "statistiche",
            "pacchetti",
            "errori",
            "ricevuti",
            "trasmessi",
            "unita",
            "indirizzo",
            "trascorso",
            "richieste",
            "immissione",
            "emissione",
            "configurazione",
            "vero",
            "nodo",
            "numero",
            "dall'ultima",
            "reimpostazione",
        ],
    ),
    (
        "Portuguese",
        &[
            "relatorio",
            "estatisticas",
            "ultima",
            "reconfiguracao",
            "pacotes",
            "erros",
            "recebidos",
            "endereco",
            "decorrido",
            "pedidos",
            "configuracao",
            "verdadeiro",
            "saida",
            "dispositivo",
            "segundos",
            "desde",
            "contagem",
        ],
    ),
];

/// So much of a text is looked at.
const ENOUGH: usize = 2048;

/// So many different words of one language make it clear.
const CLEAR: usize = 6;

/// Every word with its language and its number there, in the order of the words; where those of each letter begin; and which
/// lengths they have, since most words of a report are none of them.
struct Known {
    words: Vec<(&'static [u8], usize, usize)>,
    starts: [usize; 27],
    lengths: [u32; 26],
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let all = WORDS.iter().enumerate().flat_map(|(language, (_, words))| {
        words.iter().enumerate().map(move |(index, word)| (word.as_bytes(), language, index))
    });
    let mut words: Vec<_> = all.collect();
    words.sort_unstable();
    let letter = |word: &[u8]| word.first().map_or(0, |first| usize::from(first - b'a'));
    let mut lengths = [0; 26];
    for (word, ..) in &words {
        lengths[letter(word)] |= 1 << word.len();
    }
    let starts = std::array::from_fn(|of| words.partition_point(|(word, ..)| letter(word) < of));
    Known { words, starts, lengths }
});

impl Known {
    /// Whether a word can be one of them, in whatever case.
    fn may_hold(&self, word: &[u8]) -> bool {
        let first = word.first().map(u8::to_ascii_lowercase).filter(u8::is_ascii_lowercase);
        let lengths = first.map_or(0, |first| self.lengths[usize::from(first - b'a')]);
        word.len() < LONGEST && lengths & 1 << word.len() != 0
    }

    /// The languages in which the word stands, in small letters, and as which of their words.
    fn find(&self, word: &[u8]) -> impl Iterator<Item = (usize, usize)> {
        let letter = word.first().filter(|first| first.is_ascii_lowercase());
        let letter = letter.map(|first| usize::from(first - b'a'));
        let range = letter.map_or(0..0, |letter| self.starts[letter]..self.starts[letter + 1]);
        let same = self.words[range].iter().filter(move |(other, ..)| *other == word);
        same.map(|(_, language, index)| (*language, *index))
    }
}

/// The language of a text that is not English, when enough speaks for one.
pub(super) fn detect(text: &str) -> Option<&'static str> {
    let text = &text[..text.floor_char_boundary(ENOUGH)];
    if !text.is_ascii()
        && let Some(language) = by_script(text)
    {
        return Some(language);
    }
    let known = &*KNOWN;
    let mut seen = Seen::default();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() && !seen.clear {
        let end = bytes[at..].iter().position(|byte| CLASSES[usize::from(*byte)] != LETTER);
        let end = end.map_or(bytes.len(), |length| at + length);
        if bytes.get(end).is_some_and(|byte| CLASSES[usize::from(*byte)] == OTHER) {
            at = accented(text, at, known, &mut seen);
            continue;
        }
        // Most words are none of the table's, by their length and their first letter: nothing is copied for them.
        if let Some(word) = bytes.get(at..end).filter(|word| known.may_hold(word)) {
            let mut letters = [0; LONGEST];
            for (letter, byte) in letters.iter_mut().zip(word) {
                *letter = byte.to_ascii_lowercase();
            }
            seen.word(known, &letters[..word.len()]);
        }
        at = end + 1;
    }
    let best = seen.counts.iter().copied().enumerate().filter(|(_, count)| *count >= 2);
    let best = best.max_by_key(|(index, count)| (*count, usize::MAX - index));
    best.and_then(|(index, _)| WORDS.get(index)).map(|(language, _)| *language)
}

/// What a byte is: of a word, between words, or of a character that is not ASCII.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_usize;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'\'' => LETTER,
            0..=0x7f => 0,
            _ => OTHER,
        };
        byte += 1;
    }
    classes
};
const LETTER: u8 = 1;
const OTHER: u8 = 2;

/// Words are shorter.
const LONGEST: usize = 32;

/// A word with letters that have accents, from this byte on; where the next one begins.
fn accented(text: &str, from: usize, known: &Known, seen: &mut Seen) -> usize {
    let (mut letters, mut length) = ([0; LONGEST], 0);
    let mut end_of_word = |length: &mut usize, letters: &[u8; LONGEST]| {
        let word = letters.get(..std::mem::take(length)).filter(|word| known.may_hold(word));
        if let Some(word) = word {
            seen.word(known, word);
        }
    };
    let mut at = from;
    for c in text[from..].chars() {
        at += c.len_utf8();
        let mut take = |c: char| {
            // ASCII is one byte.
            let letter = c.is_ascii() && CLASSES[c as usize] == LETTER;
            match letters.get_mut(length).filter(|_| letter) {
                Some(place) => *place = c.to_ascii_lowercase() as u8,
                None if letter => {}
                None => end_of_word(&mut length, &letters),
            }
            length += usize::from(letter);
            letter
        };
        if !c.is_ascii() {
            for c in c.to_lowercase() {
                take(plain(c));
            }
        } else if !take(c) {
            return at;
        }
    }
    end_of_word(&mut length, &letters);
    at
}

/// Which words of which languages a text has.
#[derive(Default)]
struct Seen {
    found: [u64; WORDS.len()],
    counts: [usize; WORDS.len()],
    /// So many of one language, and of no other, that the rest of the text says nothing else.
    clear: bool,
}

impl Seen {
    fn word(&mut self, known: &Known, word: &[u8]) {
        for (language, index) in known.find(word) {
            let found = 1 << index;
            if self.found[language] & found != 0 {
                continue;
            }
            self.found[language] |= found;
            self.counts[language] += 1;
            let most = self.counts.iter().copied().max().unwrap_or(0);
            let near = self.counts.iter().filter(|count| **count * 2 > most).count();
            self.clear = most >= CLEAR && near == 1;
        }
    }
}

/// Writing systems that name the language by themselves.
fn by_script(text: &str) -> Option<&'static str> {
    let (mut japanese, mut korean, mut chinese, mut russian) = (0, 0, 0, 0);
    for c in text.chars() {
        match c {
            '\0'..='\u{3ff}' => {}
            '\u{0400}'..='\u{04ff}' => russian += 1,
            '\u{3040}'..='\u{30ff}' => japanese += 1,
            '\u{4e00}'..='\u{9fff}' => chinese += 1,
            '\u{ac00}'..='\u{d7af}' => korean += 1,
            _ => {}
        }
    }
    let enough = [
        (japanese >= 2, "Japanese"),
        (korean >= 2, "Korean"),
        (chinese >= 4, "Chinese"),
        (russian >= 4, "Russian"),
    ];
    enough.into_iter().find(|(enough, _)| *enough).map(|(_, language)| language)
}

/// A small letter of the languages above without its accent.
fn plain(c: char) -> char {
    match c {
        'ä' | 'á' | 'à' | 'â' | 'ã' => 'a',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'í' | 'ì' | 'î' | 'ï' => 'i',
        'ö' | 'ó' | 'ò' | 'ô' | 'õ' => 'o',
        'ü' | 'ú' | 'ù' | 'û' => 'u',
        'ç' => 'c',
        'ñ' => 'n',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{WORDS, detect};

    /// Every word counts in its language, in capitals too, and one alone decides nothing.
    #[test]
    fn every_word_of_the_table_is_found() {
        for (language, words) in WORDS {
            for word in *words {
                let beside = words.iter().find(|other| *other != word).expect("another word");
                let own = |text: &str| detect(text) == Some(*language);
                let shared = WORDS.iter().filter(|(_, all)| all.contains(word)).count() > 1
                    || WORDS.iter().filter(|(_, all)| all.contains(beside)).count() > 1;
                let text = format!("x: {} 5, {beside}.", word.to_uppercase());
                assert!(own(&text) || shared, "{language}: {text}");
                assert_eq!(detect(&format!("{word} {word} {word}")), None, "{word}");
            }
        }
    }

    /// Accents are taken for what is below them, wherever they stand in a word, and long words are none.
    #[test]
    fn accents_and_long_words() {
        assert_eq!(detect("Zurücksetzen: 5\nÜbertragene Pakete"), Some("German"));
        assert_eq!(detect("DERNIÈRE réinitialisation"), Some("French"));
        assert_eq!(detect("dernière·réinitialisation"), Some("French"));
        let long = "a".repeat(100);
        assert_eq!(detect(&format!("{long} é{long} anzahl{long} zeit{long}")), None);
        assert_eq!(detect("Seconds Since Last Reset: 86411\nNumber of packets"), None);
    }
}
