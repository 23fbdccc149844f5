//! The codes of refusals and of errors in a manifest, which scripts match on. A code stays once it is released; `shotlist schema diagnostics` lists them.

use schemars::JsonSchema;
use serde::Serialize;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident: $($variant:ident $code:literal $meaning:literal)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
        pub enum $name {
            $(#[doc = $meaning] #[serde(rename = $code)] $variant,)*
        }

        impl $name {
            /// Its short name, for scripts.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)*
                }
            }
        }
    };
}

codes! {
    /// A reason why shotlist refuses a run or a change of the ledger, before anything is sent.
    RefusalCode:
    AlreadyPaid "already-paid" "Jobs are already paid for, without consent to a repurchase."
    BatchLocked "batch-locked" "Another run has locked the batch."
    Frozen "frozen" "Purchases in the ledger are frozen."
    LedgerKind "ledger-kind" "Of the ledger and the service, one is real and the other simulated."
    LedgerPrivate "ledger-private" "The manifest requires a shared ledger."
    LedgerRefuses "ledger-refuses" "The ledger refuses a change."
    LedgerUnavailable "ledger-unavailable" "The ledger can't be opened or reached."
    MovedOnto "moved-onto" "`moved` gives a purchase to a job that has one."
    NoAssetCommand "no-asset-command" "A job has a local image, but `--asset-command` is not set."
    NoClient "no-client" "The HTTP client or the simulator can't start."
    NoConnection "no-connection" "A plan with requests has no connection to a service."
    NoConsent "no-consent" "Spending requires consent."
    NotAReport "not-a-report" "A report would replace a file that is not a report."
    NotWritable "not-writable" "A file or the ledger can't be written."
    OtherAccount "other-account" "Active tasks belong to another base URL or API key."
    OtherPlan "other-plan" "Another runner runs the batch with another plan."
    OverLimit "over-limit" "The run would exceed a spend limit."
    PlanDiffers "plan-differs" "The plan differs from the approved plan."
    ReplacesInput "replaces-input" "A video would replace a file that the run reads."
    RunnerMayLive "runner-may-live" "The runner that sent a job may still run."
    SecretInRequest "secret-in-request" "A request contains the API key or another secret."
    TaskAssigned "task-assigned" "The task is assigned to a live runner."
}

codes! {
    /// A rule that a manifest can break.
    Rule:
    AspectRatioUnknown "aspect-ratio-unknown" "The family has no such aspect ratio."
    AxisEmpty "axis-empty" "An axis of a matrix has no values."
    AxisRepeats "axis-repeats" "An axis of a matrix has the same value twice."
    AxisReserved "axis-reserved" "Templates use an axis's name for something else."
    AxisUnknown "axis-unknown" "`exclude` names an axis that the matrix does not have."
    CellError "cell-error" "A cell of a workbook holds an error."
    CsvDuplicateColumn "csv-duplicate-column" "Two columns of a sheet have the same name."
    CsvMalformed "csv-malformed" "A sheet can't be read as CSV."
    CsvNoHeader "csv-no-header" "A sheet has no header row."
    CsvNoRows "csv-no-rows" "A file of rows has none."
    CsvOpenQuote "csv-open-quote" "A quote in a sheet is never closed."
    CsvRagged "csv-ragged" "A row of a sheet has more or fewer cells than its header."
    CsvSeparator "csv-separator" "The cells of a sheet are separated by something that no CSV has."
    CsvTooLong "csv-too-long" "A file of rows has more than a manifest may make jobs of."
    DurationOutOfRange "duration-out-of-range" "The family makes no video of that length."
    Empty "empty" "The manifest is empty."
    EnvForbidden "env-forbidden" "A manifest may not read shotlist's own environment variables."
    ExtraContradicts "extra-contradicts" "`extra` says a field that the interface documents."
    ExtraNotJson "extra-not-json" "A value under `extra` can't be sent as JSON."
    ExtraUndocumented "extra-undocumented" "A field under `extra` is not documented, and is sent as it is."
    FaceUnknown "face-unknown" "A face is not declared under `faces`."
    FieldNotOfFamily "field-not-of-family" "The model's family has no such field."
    FileDuplicate "file-duplicate" "Two jobs' videos would have the same file."
    FileInvalid "file-invalid" "A video can't be kept under this path."
    FileIsAnMp4 "file-is-an-mp4" "A video's file has another ending than `.mp4`."
    IdDuplicate "id-duplicate" "Two jobs have the same id, or ids that differ only in letter case."
    IdInvalid "id-invalid" "A job's id has a character that none may have, or is too long."
    IdMissing "id-missing" "A job has no id."
    ImageFileBlank "image-file-blank" "`image_file` is there and names no picture."
    ImageFileNoPicture "image-file-no-picture" "A file that a video is to begin with is no picture."
    ImageIsAPage "image-is-a-page" "An image's address leads to a page that shows it."
    ImageKeyAlone "image-key-alone" "`image_key` stands in for an image, and there is none."
    ImageNotAUrl "image-not-a-url" "An image is no http or https address."
    ImageTwice "image-twice" "A job has an `image` and an `image_file`."
    JsonlMalformed "jsonl-malformed" "A line of a file of JSON objects is none."
    KeyDuplicate "key-duplicate" "A key stands twice in one mapping."
    KeyNotText "key-not-text" "A key is no text."
    LabelInvalid "label-invalid" "A label has a name or a value that none may have."
    LimitUnmatched "limit-unmatched" "A limit is for a label that no job has, and one has nearly the same."
    MatrixAndJob "matrix-and-job" "A field stands on the job and in its matrix."
    MatrixEmpty "matrix-empty" "Nothing is left of a matrix."
    MatrixTooLarge "matrix-too-large" "A matrix has too many combinations."
    ModelMissing "model-missing" "A job has no model."
    ModelUnknown "model-unknown" "The catalogue has no such model."
    MovedCircle "moved-circle" "`moved` leads from an id back to itself."
    MovedFromJob "moved-from-job" "`moved` gives away what was bought for a job that is still there."
    MovedToUnknown "moved-to-unknown" "`moved` gives what was bought to an id that no job has."
    MovedTwice "moved-twice" "`moved` names an id twice."
    NameMissing "name-missing" "A manifest that is no file has no name."
    NoJobs "no-jobs" "The manifest lists no jobs."
    NoRows "no-rows" "`for_each` lists no rows."
    NotMoney "not-money" "An amount is none of dollars."
    PromptBlank "prompt-blank" "A prompt is blank."
    PromptHole "prompt-hole" "A cell is empty that a prompt has in the midst of its words."
    PromptLeftover "prompt-leftover" "A prompt looks as if a template in it was not filled in."
    PromptMissing "prompt-missing" "A job has no prompt."
    PromptTooLong "prompt-too-long" "A prompt is longer than the family takes."
    PromptTwice "prompt-twice" "A job has a prompt and a file of one."
    ReviewMissing "review-missing" "A face does not say how far its review is."
    ReviewUnknown "review-unknown" "A face's review is neither approved nor pending."
    SameRequest "same-request" "Two jobs ask for the same video."
    SetUnknown "set-unknown" "`--set` names a var that the manifest does not have."
    SheetUnknown "sheet-unknown" "A workbook has no sheet of that name."
    SizeMalformed "size-malformed" "A size is not written as `WIDTHxHEIGHT`."
    SizeNot720p "size-not-720p" "A size has another number of lines than 720, which is all that is documented."
    TakesOutOfRange "takes-out-of-range" "There are fewer takes than one, or too many."
    Template "template" "A template can't be read or filled in."
    TemplateCircle "template-circle" "A field is used to make itself."
    TextCutOff "text-cut-off" "A `#` begins a comment in the middle of what looks like a text."
    TimezoneUnknown "timezone-unknown" "There is no such time zone."
    TooManyJobs "too-many-jobs" "The manifest makes more jobs than one may."
    TooMuchText "too-much-text" "The manifest's jobs hold more text than they may."
    TypographicQuotes "typographic-quotes" "A value stands in typographic quotes, which YAML takes for a part of it."
    UnknownKey "unknown-key" "There is no such key here."
    Unreadable "unreadable" "A file can't be read."
    VarReserved "var-reserved" "Templates use a var's name for something else."
    VersionMissing "version-missing" "The manifest has no `version`."
    VersionUnknown "version-unknown" "The manifest is of another version of the format."
    WrongType "wrong-type" "A value is of a wrong type."
    Yaml "yaml" "The manifest is no YAML."
    YamlLimit "yaml-limit" "The manifest is too deep, or its references make too much of it."
}

impl Rule {
    /// Whether it says that something is not there. Where an entry has an unknown or mistyped key, that is what is missing.
    #[must_use]
    pub fn is_about_absence(self) -> bool {
        matches!(
            self,
            Self::IdMissing
                | Self::ModelMissing
                | Self::NameMissing
                | Self::PromptMissing
                | Self::ReviewMissing
                | Self::VersionMissing
        )
    }
}
