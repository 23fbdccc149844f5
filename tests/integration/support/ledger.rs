//! The ledger's file, opened past the program: to break it, or to write what another program would.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};

/// A connection that keeps the checksums, by a second implementation of the functions that the triggers call.
pub fn open_ledger(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("the ledger");
    connection.busy_timeout(std::time::Duration::from_secs(30)).expect("a time-out");
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
    let digest = connection.create_scalar_function("digest", -1, flags, |values| {
        let mut bytes = Vec::new();
        for place in 0..values.len() {
            let (kind, value) = match values.get_raw(place) {
                ValueRef::Null => (0, Vec::new()),
                ValueRef::Integer(number) => (1, number.to_le_bytes().to_vec()),
                ValueRef::Real(number) => (2, number.to_le_bytes().to_vec()),
                ValueRef::Text(text) => (3, text.to_vec()),
                ValueRef::Blob(blob) => (4, blob.to_vec()),
            };
            bytes.push(kind);
            bytes.extend(u64::try_from(value.len()).expect("short").to_le_bytes());
            bytes.extend(value);
        }
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        Ok(i64::from_le_bytes(digest[..8].try_into().expect("eight bytes")))
    });
    digest.expect("a function");
    let changed = connection.create_scalar_function("changed", 3, flags, |values| {
        let [sum, before, after] = [0, 1, 2].map(|place| values.get::<i64>(place).expect("a number"));
        Ok(sum.wrapping_sub(before).wrapping_add(after))
    });
    changed.expect("a function");
    keep_checksums(&connection);
    connection
}

/// Lets the writes of this connection keep the checksum of attempts, as the program does for its own writes.
fn keep_checksums(connection: &Connection) {
    let names = "SELECT group_concat(name) FROM pragma_table_info('attempt', 'main')";
    let names: Option<String> = connection.query_row(names, [], |row| row.get(0)).expect("columns");
    // A damaged file may lack the table.
    let Some(names) = names else { return };
    let digest = |row: &str| format!("digest('attempt', {row}.{})", names.replace(',', &format!(", {row}.")));
    let (new, old) = (digest("NEW"), digest("OLD"));
    for (event, row, before, after) in
        [("INSERT", "NEW", "0", &*new), ("UPDATE", "NEW", &old, &new), ("DELETE", "OLD", &old, "0")]
    {
        let trigger = format!(
            "CREATE TEMP TRIGGER keep_{event} AFTER {event} ON main.attempt BEGIN
                 UPDATE batch SET checksum = changed(checksum, {before}, {after}) WHERE id = {row}.batch; END"
        );
        connection.execute_batch(&trigger).expect("a trigger");
    }
}

/// Makes the parts of each record columns of `attempt`, for queries of this connection.
pub fn show_records(connection: &Connection) -> rusqlite::Result<()> {
    let parts = [
        ("request", "purchase.request.body"),
        ("video_url", "video_url"),
        ("polls", "polls"),
        ("answered_at", "answered_at"),
        ("ended_at", "ended_at"),
        ("file", "file.path"),
        ("bought_as", "particulars.bought_as"),
        ("declared", "particulars.declared.what"),
        ("executed_at", "particulars.executed.at"),
        ("exec_error", "particulars.executed.error"),
        ("is_charged", "particulars.billed.is_charged"),
        ("billed_source", "particulars.billed.source"),
    ];
    let columns = parts.map(|(name, path)| format!("record ->> '$.{path}' AS {name}")).join(", ");
    connection.execute_batch(&format!("CREATE TEMP VIEW attempt AS SELECT *, {columns} FROM main.attempt"))
}
