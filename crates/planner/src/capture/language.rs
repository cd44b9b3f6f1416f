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
    /// The languages in which the word stands, and as which of their words.
    fn find(&self, word: &str) -> impl Iterator<Item = (usize, usize)> {
        let first = word.as_bytes().first().filter(|first| first.is_ascii_lowercase());
        let lengths = first.map_or(0, |first| self.lengths[usize::from(first - b'a')]);
        let fits = word.len() < 32 && lengths & 1 << word.len() != 0;
        let from = if fits {
            self.words.partition_point(|(other, ..)| *other < word)
        } else {
            self.words.len()
        };
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
    let folded = fold(text);
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut counts = [0_usize; WORDS.len()];
    for word in folded.split(|c: char| !(c.is_ascii_alphabetic() || c == '-' || c == '\'')) {
        for known in KNOWN.find(word) {
            if !found.contains(&known) {
                found.push(known);
                counts[known.0] += 1;
            }
        }
        // So many of one language, and of no other: the rest of the text says nothing else.
        let most = counts.iter().copied().max().unwrap_or(0);
        if most >= CLEAR && counts.iter().filter(|count| **count * 2 > most).count() == 1 {
            break;
        }
    }
    let best = counts.iter().copied().enumerate().filter(|(_, count)| *count >= 2);
    let best = best.max_by_key(|(index, count)| (*count, usize::MAX - index));
    best.and_then(|(index, _)| WORDS.get(index)).map(|(language, _)| *language)
}

/// Writing systems that name the language by themselves.
fn by_script(text: &str) -> Option<&'static str> {
    let count = |from: char, to: char| text.chars().filter(|c| (from..=to).contains(c)).count();
    if count('\u{3040}', '\u{30ff}') >= 2 {
        return Some("Japanese");
    }
    if count('\u{ac00}', '\u{d7af}') >= 2 {
        return Some("Korean");
    }
    if count('\u{4e00}', '\u{9fff}') >= 4 {
        return Some("Chinese");
    }
    if count('\u{0400}', '\u{04ff}') >= 4 {
        return Some("Russian");
    }
    None
}

/// Lower case without accents, for the letters of the languages above.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let plain = |c: char| match c {
        'ä' | 'á' | 'à' | 'â' | 'ã' => 'a',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'í' | 'ì' | 'î' | 'ï' => 'i',
        'ö' | 'ó' | 'ò' | 'ô' | 'õ' => 'o',
        'ü' | 'ú' | 'ù' | 'û' => 'u',
        'ç' => 'c',
        'ñ' => 'n',
        other => other,
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x7f' => out.push(c.to_ascii_lowercase()),
            _ => out.extend(c.to_lowercase().map(plain)),
        }
    }
    out
}
