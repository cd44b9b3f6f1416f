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

/// Every word with its language and its number there, in the order of the words; and which lengths those have that begin
/// with a letter, since most words of a report are none of them.
struct Known {
    words: Vec<(&'static str, usize, usize)>,
    lengths: [u32; 26],
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let all = WORDS.iter().enumerate().flat_map(|(language, (_, words))| {
        words.iter().enumerate().map(move |(index, word)| (*word, language, index))
    });
    let mut known = Known { words: all.collect(), lengths: [0; 26] };
    known.words.sort_unstable();
    for (word, ..) in &known.words {
        let letter = word.as_bytes().first().map_or(0, |first| usize::from(first - b'a'));
        known.lengths[letter] |= 1 << word.len();
    }
    known
});

impl Known {
    /// Whether a word can be one of them.
    fn may_hold(&self, word: &[u8]) -> bool {
        let first = word.first().filter(|first| first.is_ascii_lowercase());
        let lengths = first.map_or(0, |first| self.lengths[usize::from(first - b'a')]);
        word.len() < 32 && lengths & 1 << word.len() != 0
    }

    /// The languages in which the word stands, and as which of their words.
    fn find(&self, word: &str) -> impl Iterator<Item = (usize, usize)> {
        let from = self.words.partition_point(|(other, ..)| *other < word);
        let same = self.words[from..].iter().take_while(move |(other, ..)| *other == word);
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
    let mut seen = Seen::default();
    let mut word = Word::default();
    let mut rest = text.as_bytes().iter();
    let mut at = 0;
    while let Some(byte) = rest.next()
        && !seen.clear
    {
        match *byte {
            b'a'..=b'z' | b'-' | b'\'' => word.letter(*byte),
            b'A'..=b'Z' => word.letter(byte.to_ascii_lowercase()),
            0..=0x7f => word.end(&mut seen),
            _ => {
                let Some(c) = text[at..].chars().next() else { break };
                c.to_lowercase().for_each(|c| word.take(plain(c), &mut seen));
                at += c.len_utf8();
                rest = text.as_bytes()[at..].iter();
                continue;
            }
        }
        at += 1;
    }
    word.end(&mut seen);
    let best = seen.counts.iter().copied().enumerate().filter(|(_, count)| *count >= 2);
    let best = best.max_by_key(|(index, count)| (*count, usize::MAX - index));
    best.and_then(|(index, _)| WORDS.get(index)).map(|(language, _)| *language)
}

/// A word as it is read, letter by letter: no copy of the text is made.
#[derive(Default)]
struct Word {
    letters: [u8; 32],
    length: usize,
}

impl Word {
    fn take(&mut self, c: char, seen: &mut Seen) {
        if c.is_ascii_alphabetic() || matches!(c, '-' | '\'') {
            // ASCII is one byte.
            self.letter(c as u8);
        } else {
            self.end(seen);
        }
    }

    fn letter(&mut self, letter: u8) {
        if let Some(place) = self.letters.get_mut(self.length) {
            *place = letter;
        }
        self.length += 1;
    }

    fn end(&mut self, seen: &mut Seen) {
        if self.length == 0 {
            return;
        }
        let letters = self.letters.get(..std::mem::take(&mut self.length));
        // Most words are none of the table's, by their length and their first letter.
        if let Some(letters) = letters.filter(|letters| KNOWN.may_hold(letters))
            && let Ok(word) = std::str::from_utf8(letters)
        {
            seen.word(word);
        }
    }
}

/// Which words of which languages a text has.
#[derive(Default)]
struct Seen {
    found: Vec<(usize, usize)>,
    counts: [usize; WORDS.len()],
    /// So many of one language, and of no other, that the rest of the text says nothing else.
    clear: bool,
}

impl Seen {
    fn word(&mut self, word: &str) {
        for known in KNOWN.find(word) {
            if self.found.contains(&known) {
                continue;
            }
            self.found.push(known);
            self.counts[known.0] += 1;
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
