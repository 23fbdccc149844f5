//! A text table of a spreadsheet program: its encoding, its separator, and the lines of its rows.
//!
//! UTF-8 and UTF-16 are read. The user has to name any other encoding: detection is a guess, and a wrong one changes the prompts.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, MACINTOSH, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memchr2_iter;

/// The separators of cells.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];
/// Typographic characters that users type.
const SIGNS: &str = "„“”‘’–…€°";
/// The maximum number of sample words of an encoding.
const MAX_WORDS: usize = 3;

/// The reason that a table can't be decoded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Undecoded {
    /// The table has another encoding, and the manifest does not name it.
    #[error("it is neither UTF-8 nor UTF-16; as `{encoding}`, it would read {words}")]
    Unnamed { encoding: String, words: String },
    /// Spreadsheet programs don't read UTF-32 either.
    #[error("it is UTF-32")]
    Utf32,
    /// Another encoding is named, and would turn each accented letter into two others.
    #[error("it is UTF-8, and not `{0}`")]
    Utf8(String),
    /// Some bytes are invalid in the named encoding, or after the byte order mark.
    #[error("it is not `{0}`: some of its bytes mean nothing in it")]
    Damaged(String),
}

/// The name of an encoding in a manifest.
pub(crate) fn name_of(encoding: &'static Encoding) -> String {
    encoding.name().to_ascii_lowercase()
}

/// The text of a table, without a byte order mark. A mark outweighs the name.
pub(crate) fn decoded(bytes: Vec<u8>, named: Option<&'static Encoding>) -> Result<String, Undecoded> {
    if let [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [_, 0, 0, 0, ..] | [0, 0, 0, _, ..] = bytes[..] {
        return Err(Undecoded::Utf32);
    }
    // Column names start with ASCII letters, so in UTF-16 one of the first two bytes is zero.
    let without_mark = match bytes[..] {
        [_, 0, ..] => Some(UTF_16LE),
        [0, _, ..] => Some(UTF_16BE),
        _ => None,
    };
    if let Some(encoding) = Encoding::for_bom(&bytes).map(|(encoding, _)| encoding).or(without_mark).or(named) {
        if named == Some(encoding) && encoding != UTF_8 && !bytes.is_ascii() && str::from_utf8(&bytes).is_ok() {
            return Err(Undecoded::Utf8(name_of(encoding)));
        }
        let (text, _, is_damaged) = encoding.decode(&bytes);
        return if is_damaged { Err(Undecoded::Damaged(name_of(encoding))) } else { Ok(text.into_owned()) };
    }
    String::from_utf8(bytes).map_err(|error| {
        let encoding = detected(error.as_bytes());
        Undecoded::Unnamed { words: words(&encoding.decode(error.as_bytes()).0), encoding: name_of(encoding) }
    })
}

/// Detects an encoding. The detector is made for web pages, and lacks Mac Roman, in which Excel for Mac saves CSV files.
fn detected(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let fits = |encoding: &'static Encoding| fitting(&encoding.decode(bytes).0);
    if guess.is_single_byte() && fits(MACINTOSH) > fits(guess) { MACINTOSH } else { guess }
}

/// Counts the plausible characters outside ASCII: a capital letter starts a word.
fn fitting(text: &str) -> usize {
    let mut before = ' ';
    let fits = |c: char| {
        let begins = !before.is_lowercase();
        before = c;
        !c.is_ascii() && (SIGNS.contains(c) || c.is_alphabetic() && (begins || !c.is_uppercase()))
    };
    text.chars().map(fits).filter(|fits| *fits).count()
}

/// Words with characters outside ASCII, each in backticks.
fn words(text: &str) -> String {
    let parts = text.split(|c: char| c.is_ascii_punctuation() || c.is_whitespace());
    let words: Vec<String> =
        parts.filter(|word| !word.is_ascii()).take(MAX_WORDS).map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// The table, its separator, and the number of lines above it: Excel may write `sep=;` into an extra first line.
pub(crate) fn separated(csv: &str) -> (&str, u8, u64) {
    let (first, rest) = csv.split_once('\n').unwrap_or((csv, ""));
    match first.trim_end_matches('\r').trim_matches('"').strip_prefix("sep=").map(str::as_bytes) {
        Some([separator]) if SEPARATORS.contains(separator) => (rest, *separator, 1),
        _ => (csv, separator(csv), 0),
    }
}

/// The most frequent separator in the header, outside quotes: Excel in German writes semicolons, and copied tables have tabs.
pub(crate) fn separator(csv: &str) -> u8 {
    let (mut counts, mut is_quoted) = (SEPARATORS.map(|separator| (separator, 0)), false);
    for byte in csv.trim_ascii_start().bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' if !is_quoted => break,
            byte if !is_quoted => {
                counts.iter_mut().filter(|(known, _)| *known == byte).for_each(|(_, count)| *count += 1);
            }
            _ => {}
        }
    }
    // The first of equals.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(separator, _)| *separator)
}

/// The first line of a record, from 1. The reader counts from the end of the previous record, and thus includes blank lines.
pub(crate) fn line_of(csv: &str, record: &csv::StringRecord) -> u64 {
    let Some(position) = record.position() else { return 0 };
    let start = usize::try_from(position.byte()).unwrap_or(usize::MAX);
    let blank = csv.get(start..).unwrap_or_default().bytes().take_while(|byte| matches!(byte, b'\n' | b'\r'));
    position.line() + blank.filter(|&byte| byte == b'\n').count() as u64
}

/// Returns the line of an opening quote, from 1, that does not end with its cell. The reader takes later rows for a part of the cell, which would be a long
/// prompt.
pub(crate) fn unclosed(csv: &str, separator: u8) -> Option<u64> {
    let bytes = csv.as_bytes();
    // The reader skips a byte order mark.
    let begin = if bytes.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
    let begins_a_cell = |at: usize| at == begin || [separator, b'\n', b'\r'].contains(&bytes[at - 1]);
    let (mut line, mut opened, mut escaped) = (1, None, None);
    for at in memchr2_iter(b'"', b'\n', bytes) {
        let is_escaped = escaped.take() == Some(at);
        match (bytes[at], opened) {
            (b'\n', _) => line += 1,
            (_, None) if begins_a_cell(at) => opened = Some(line),
            (_, Some(_)) if is_escaped => {}
            // Two quotes in a quoted cell are one that is part of it.
            (_, Some(_)) if bytes.get(at + 1) == Some(&b'"') => escaped = Some(at + 1),
            (_, Some(_)) => {
                let ends_a_cell = |byte: &u8| [separator, b'\n', b'\r'].contains(byte);
                opened = opened.filter(|_| !bytes.get(at + 1).is_none_or(ends_a_cell));
                if opened.is_some() {
                    break;
                }
            }
            (_, None) => {}
        }
    }
    opened
}

#[cfg(test)]
mod tests {
    use encoding_rs::{
        BIG5, EUC_KR, GBK, ISO_8859_2, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253, WINDOWS_1254,
        X_MAC_CYRILLIC,
    };
    use proptest::prelude::*;

    use super::*;

    /// CSV files of Excel on Windows and macOS in several countries.
    const SAVED: [(&Encoding, &str); 13] = [
        (WINDOWS_1252, "id;prompt\n1;Ein Fuchs läuft über die Straße, früh am Morgen\n2;Größe und Wärme\n"),
        (WINDOWS_1252, "id;prompt\n1;Un été à la forêt, l’eau monte\n2;Où est passé le garçon ?\n"),
        (WINDOWS_1252, "id,prompt\n1,The fox’s den – at dusk\n2,“Slow” pan\n"),
        (WINDOWS_1250, "id;prompt\n1;Lis przechodzi przez ulicę, wcześnie rano\n2;Zażółć gęślą jaźń\n"),
        (WINDOWS_1251, "id;prompt\n1;Лиса переходит дорогу ранним утром\n2;Медленный наезд камеры\n"),
        (WINDOWS_1253, "id;prompt\n1;Μια αλεπού διασχίζει τον δρόμο νωρίς το πρωί\n2;Αργή κίνηση της κάμερας\n"),
        (WINDOWS_1254, "id;prompt\n1;Bir tilki sabah erkenden yolu geçiyor, ışık yumuşak\n2;Güneş doğuyor, ağaçlar\n"),
        (GBK, "id,prompt\n1,一只红狐狸清晨穿过马路\n2,镜头缓慢推进，光线柔和\n"),
        (BIG5, "id,prompt\n1,一隻紅狐狸清晨穿過馬路\n2,鏡頭緩慢推進，光線柔和\n"),
        (SHIFT_JIS, "id,prompt\n1,赤いキツネが早朝に道を渡る\n2,カメラがゆっくり近づく\n"),
        (EUC_KR, "id,prompt\n1,붉은 여우가 이른 아침 길을 건넌다\n2,카메라가 천천히 다가간다\n"),
        (MACINTOSH, "id;prompt\n1;Ein Fuchs läuft über die Straße, früh am Morgen\n2;Größe und Wärme\n"),
        (MACINTOSH, "id;prompt\n1;Un été à la forêt, l’eau monte\n2;Où est passé le garçon ?\n"),
    ];

    #[test]
    fn unnamed_encoding_is_detected_and_refused() {
        for (encoding, text) in SAVED {
            let (bytes, _, is_lossy) = encoding.encode(text);
            assert!(!is_lossy, "{text}");
            let error = decoded(bytes.to_vec(), None).expect_err(text);
            let Undecoded::Unnamed { encoding: found, words } = error else { panic!("{error}") };
            assert_eq!(found, name_of(encoding), "{words}: {text}");
            assert_eq!(decoded(bytes.to_vec(), Some(encoding)).as_deref(), Ok(text));
        }
    }

    /// Many encodings are valid for the same bytes, so none is assumed.
    #[test]
    fn no_table_in_another_encoding_becomes_text_unless_it_is_named() {
        for encoding in [ISO_8859_2, X_MAC_CYRILLIC].into_iter().chain(SAVED.map(|(encoding, _)| encoding)) {
            for (_, text) in SAVED {
                let (bytes, _, is_lossy) = encoding.encode(text);
                let is_undecoded = decoded(bytes.to_vec(), None).is_err();
                assert!(is_lossy || is_undecoded, "{}: {text}", encoding.name());
            }
        }
    }

    #[test]
    fn utf_8_and_utf_16_are_read_and_utf_32_is_refused() {
        let text = "id,prompt\n1,é 狐\n";
        let utf16 = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
        let marked = |mark: &[u8], bytes: Vec<u8>| [mark, &bytes].concat();
        for bytes in [
            text.as_bytes().to_vec(),
            marked("\u{feff}".as_bytes(), text.as_bytes().to_vec()),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
            marked(&[0xff, 0xfe], utf16(u16::to_le_bytes)),
            marked(&[0xfe, 0xff], utf16(u16::to_be_bytes)),
        ] {
            assert_eq!(decoded(bytes.clone(), None).as_deref(), Ok(text));
            // A mark outweighs a name.
            if Encoding::for_bom(&bytes).is_some() {
                assert_eq!(decoded(bytes, Some(GBK)).as_deref(), Ok(text));
            }
        }
        let utf32 = |bytes: fn(u32) -> [u8; 4]| text.chars().flat_map(|c| bytes(u32::from(c))).collect::<Vec<u8>>();
        for bytes in [
            utf32(u32::to_le_bytes),
            utf32(u32::to_be_bytes),
            marked(&[0xff, 0xfe, 0, 0], utf32(u32::to_le_bytes)),
            marked(&[0, 0, 0xfe, 0xff], utf32(u32::to_be_bytes)),
        ] {
            assert_eq!(decoded(bytes, None), Err(Undecoded::Utf32));
        }
    }

    #[test]
    fn wrong_encoding_name_is_an_error() {
        let (bytes, ..) = SHIFT_JIS.encode("id\nカメラ\n");
        for wrong in [encoding_rs::EUC_JP, UTF_8] {
            assert_eq!(decoded(bytes.to_vec(), Some(wrong)), Err(Undecoded::Damaged(name_of(wrong))));
        }
        let odd = [0xff, 0xfe, b'a', 0, b'b'];
        assert_eq!(decoded(odd.to_vec(), None), Err(Undecoded::Damaged("utf-16le".to_owned())));
    }

    /// The same letter by letter: the line of a quote that is never closed.
    fn by_letters(csv: &str, separator: u8) -> Option<u64> {
        let (mut line, mut opened, mut at_start) = (1, None, true);
        let mut bytes = csv.strip_prefix('\u{feff}').unwrap_or(csv).bytes().peekable();
        while let Some(byte) = bytes.next() {
            line += u64::from(byte == b'\n');
            match (opened, byte) {
                (None, b'"') if at_start => opened = Some(line),
                (Some(_), b'"') if bytes.peek() == Some(&b'"') => {
                    bytes.next();
                }
                (Some(_), b'"') if bytes.peek().is_none_or(|next| [separator, b'\n', b'\r'].contains(next)) => {
                    opened = None;
                }
                (Some(_), b'"') => return opened,
                _ => {}
            }
            at_start = opened.is_none() && (byte == separator || byte == b'\n' || byte == b'\r');
        }
        opened
    }

    #[test]
    fn unclosed_quote_is_found_by_its_line() {
        assert_eq!(unclosed("a,b\n1,\"x\n2,y\n", b','), Some(2));
        assert_eq!(unclosed("a,b\n1,\"x\n2,\"y\"\n3,z\n", b','), Some(2));
        assert_eq!(unclosed("a,b\n1,\"a \"shiny\" mug\"\n", b','), Some(2));
        assert_eq!(unclosed("a,b\n1,5\" wide\n2,\"say \"\"hi\"\"\"\n", b','), None);
    }

    proptest! {
        #[test]
        fn unclosed_quote_is_found_in_any_context(csv in "[ab,;\"\r\né\u{feff}]{0,40}") {
            for separator in [b',', b';'] {
                prop_assert_eq!(unclosed(&csv, separator), by_letters(&csv, separator));
            }
        }
    }
}
