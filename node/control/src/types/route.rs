//! The paths of the control socket. `{id}` is a service or channel, `{name}` a secret's name.

/// `GET` → [`super::Status`]
pub const STATUS: &str = "/status";
/// `GET` → [`super::Health`]; 200 when ready, 503 when not.
pub const HEALTH: &str = "/health";
/// `GET` → [`super::Doctor`]
pub const DOCTOR: &str = "/doctor";
/// `POST` [`super::CallRequest`] → the service's own answer, with the gateway's headers.
pub const CALL: &str = "/call";
/// `GET` → [`super::WalletBalance`]
pub const WALLET: &str = "/wallet";
/// `POST` [`super::SendRequest`] → [`super::Sent`]
pub const WALLET_SEND: &str = "/wallet/send";
/// `GET` → `Vec<`[`super::Api`]`>`; `POST` [`super::ServiceFile`] → [`super::Api`]
pub const APIS: &str = "/apis";
/// `POST` [`super::InspectRequest`] → [`super::Inspection`]: what a description offers.
pub const APIS_INSPECT: &str = "/apis/inspect";
/// `POST` [`super::ServiceFile`] → [`super::ApiPreview`]: what publishing it would show. Nothing is published.
pub const APIS_PREVIEW: &str = "/apis/preview";
/// `POST` [`super::TryRequest`] → [`super::Tried`]: one request to the server of a service to be.
pub const APIS_TRY: &str = "/apis/try";
/// `GET` → [`super::ApiShown`]; `DELETE` → [`super::Api`], the last word on it.
pub const API: &str = "/apis/{id}";
/// `POST` [`super::RescanRequest`] → [`super::Rescan`]
pub const API_RESCAN: &str = "/apis/{id}/rescan";
/// `GET` → the published OpenAPI document; `?version=3.0` for the older form.
pub const API_OPENAPI: &str = "/apis/{id}/openapi.json";
/// `POST` [`super::EditRequest`] → [`super::Api`]
pub const API_EDIT: &str = "/apis/{id}/edit";
/// `GET` → [`super::ListingHealth`]: whether others have the listing; asks them.
pub const API_HEALTH: &str = "/apis/{id}/health";
/// `GET` → `Vec<`[`super::VersionNote`]`>`, the newest first.
pub const API_VERSIONS: &str = "/apis/{id}/versions";
/// `POST` [`super::PriceRequest`] → [`super::Api`]
pub const API_PRICE: &str = "/apis/{id}/price";
/// `POST` → [`super::Api`]
pub const API_PAUSE: &str = "/apis/{id}/pause";
/// `POST` → [`super::Api`]
pub const API_RESUME: &str = "/apis/{id}/resume";
/// `POST` [`super::CatalogQuery`] → [`super::CatalogPage`]
pub const CATALOG_SEARCH: &str = "/catalog/search";
/// `GET` → [`super::CatalogService`]
pub const CATALOG_SERVICE: &str = "/catalog/{id}";
/// `GET` → the service's OpenAPI document; `?version=3.0` for the older form.
pub const CATALOG_OPENAPI: &str = "/catalog/{id}/openapi.json";
/// `GET` → [`super::CatalogSamples`]
pub const CATALOG_SAMPLES: &str = "/catalog/{id}/samples";
/// `GET` → `Vec<`[`super::VersionNote`]`>`, the newest first: of a stranger's service, those that this node saw.
pub const CATALOG_VERSIONS: &str = "/catalog/{id}/versions";
/// `GET` `?method=GET&path=/planets` → [`super::CallForm`]
pub const CATALOG_FORM: &str = "/catalog/{id}/form";
/// `GET` → [`super::sdk::Sdk`]; `?package=`, `?single_file=true`, `?form=zip` for an archive. `POST`
/// [`super::sdk::SdkRequest`] → the same.
pub const CATALOG_SDK: &str = "/catalog/{id}/sdk/{language}";
/// `POST` [`super::sdk::SnippetRequest`] → `Vec<`[`super::sdk::Snippet`]`>`
pub const CATALOG_SNIPPETS: &str = "/catalog/{id}/snippets";
/// `GET` → `Vec<`[`super::sdk::SdkLanguage`]`>`
pub const SDK_LANGUAGES: &str = "/sdk/languages";
/// `GET` → `Vec<`[`super::Channel`]`>`; `POST` [`super::OpenRequest`] → [`super::Channel`]
pub const CHANNELS: &str = "/channels";
/// `POST` → [`super::Channel`]
pub const CHANNEL_CLOSE: &str = "/channels/{id}/close";
pub const CHANNEL_RESUME: &str = "/channels/{id}/resume";
/// `POST` → [`super::Settled`]
pub const SETTLE: &str = "/settle";
/// `GET` → [`super::Audit`]
pub const AUDIT: &str = "/audit";
/// `GET` → `Vec<`[`super::Setting`]`>`: what holds in the running node, and where it comes from.
pub const CONFIG: &str = "/config";
/// `GET` → [`super::ChainSettings`]; `POST` [`super::ChainSettingsRequest`] → [`super::ChainSettingsSaved`]
pub const CHAIN_SETTINGS: &str = "/chain/settings";
/// `GET` → [`super::SpendingState`]
pub const SPENDING: &str = "/spending";
/// `POST` → [`super::SpendingState`]
pub const SPENDING_STOP: &str = "/spending/stop";
/// `POST` → [`super::SpendingState`]
pub const SPENDING_RESUME: &str = "/spending/resume";
/// `POST` [`super::LimitsRequest`] → [`super::SpendingState`]
pub const SPENDING_LIMITS: &str = "/spending/limits";
/// `POST` [`super::AcceptPrice`] → the same.
pub const SPENDING_ACCEPT: &str = "/spending/accept";
/// `GET` → [`super::FlaggedServices`]; `POST` [`super::FlagRequest`] → the same.
pub const SPENDING_FLAGGED: &str = "/spending/flagged";
/// `GET` → [`super::Secret`], the default one.
pub const SECRET: &str = "/secret";
/// `POST` → [`super::Secret`]
pub const SECRET_ROTATE: &str = "/secret/rotate";
/// `GET` → `Vec<`[`super::SecretShown`]`>`; `POST` [`super::NewSecret`] → [`super::Secret`]
pub const SECRETS: &str = "/secrets";
/// `GET` → [`super::Secret`]; `DELETE` → [`super::SecretShown`], the last word on it.
pub const SECRET_NAMED: &str = "/secrets/{name}";
/// `POST` [`super::SecretLimits`] → [`super::SecretShown`]
pub const SECRET_LIMITS: &str = "/secrets/{name}/limits";
/// `POST` → [`super::Secret`]
pub const SECRET_NAMED_ROTATE: &str = "/secrets/{name}/rotate";
/// `GET` → `Vec<`[`super::Peer`]`>`
pub const PEERS: &str = "/net/peers";
/// `POST` [`super::PingRequest`] → [`super::Pong`]
pub const PING: &str = "/net/ping";
/// `POST` [`super::LookupRequest`] → [`super::Lookup`]
pub const LOOKUP: &str = "/net/lookup";
/// `GET` → [`super::Reach`] as last tested; `POST` tests now.
pub const REACH: &str = "/net/reach";
/// `GET` → [`super::Traffic`]
pub const TRAFFIC: &str = "/net/traffic";
/// `GET` → [`super::Activity`]; `?limit=` of each side, 50 unless given, at most 500.
pub const ACTIVITY: &str = "/activity";
/// `GET` → [`super::Figures`]
pub const FIGURES: &str = "/figures";
/// `GET` → [`super::HistoryPage`]; `?kind=bought,served,settlement,transaction`, `state=`, `service=`, `from=`, `to=`,
/// `limit=` (50, at most 500), `cursor=`.
pub const HISTORY: &str = "/history";
/// `GET` → the same as CSV (RFC 4180), up to 20,000 lines.
pub const HISTORY_CSV: &str = "/history.csv";
/// `GET` → `Vec<`[`super::HistoryEntry`]`>`: the same, up to 20,000 of them.
pub const HISTORY_JSON: &str = "/history.json";
/// `GET` → `Vec<`[`super::DayTotals`]`>`, the earliest first; `?from=`, `to=`, the last 30 days unless given.
pub const HISTORY_DAYS: &str = "/history/days";
/// `GET` → [`super::SettlementShown`]
pub const SETTLEMENT: &str = "/settlements/{id}";
/// `GET` → `Vec<`[`super::Alert`]`>`
pub const ALERTS: &str = "/alerts";
/// `GET` → [`super::AlertLevels`]; `POST` [`super::AlertLevelsRequest`] → the same.
pub const ALERT_LEVELS: &str = "/alerts/levels";
/// `POST` → [`super::AlertLevels`]
pub const ALERT_TEST: &str = "/alerts/test";
/// `GET` → `Vec<`[`super::Backup`]`>`; `POST` [`super::BackupRequest`] → [`super::Backup`]
pub const BACKUPS: &str = "/backups";
/// `POST` of a backup's file → [`super::Backup`]
pub const BACKUP_UPLOAD: &str = "/backups/upload";
/// `GET` → the file.
pub const BACKUP: &str = "/backups/{name}";
/// `POST` [`super::BackupRequest`] → [`super::BackupFacts`]
pub const BACKUP_VERIFY: &str = "/backups/{name}/verify";
/// `POST` [`super::BackupRequest`] → [`super::Restoring`]; the node restarts at once.
pub const BACKUP_RESTORE: &str = "/backups/{name}/restore";
/// `GET` → [`super::AutomaticBackups`]; `POST` [`super::AutomaticBackupsRequest`] → the same.
pub const AUTOMATIC_BACKUPS: &str = "/automatic-backups";
/// `POST` → [`super::Backup`]
pub const AUTOMATIC_BACKUPS_NOW: &str = "/automatic-backups/now";
/// `GET` → `Vec<`[`super::ReplacedNode`]`>`
pub const REPLACED_NODES: &str = "/replaced-nodes";
/// `DELETE` → [`super::ReplacedNode`], the last word on it.
pub const REPLACED_NODE: &str = "/replaced-nodes/{name}";
/// `GET` → [`super::WalletBackup`]
pub const WALLET_BACKUP: &str = "/wallet/backup";
/// `POST` → [`super::Phrase`]
pub const WALLET_PHRASE: &str = "/wallet/phrase";
/// `POST` [`super::PhraseCheck`] → [`super::WalletBackup`]
pub const WALLET_PHRASE_CHECK: &str = "/wallet/phrase/check";
/// `POST` → [`super::Restarting`]
pub const RESTART: &str = "/restart";
/// `GET` → these routes as an OpenAPI document.
pub const OPENAPI: &str = "/openapi.json";
/// `GET` → [`super::Console`]. Of the socket alone.
pub const CONSOLE: &str = "/console";
/// `POST` → [`super::Console`] with a new setup code. Of the socket alone.
pub const CONSOLE_RESET: &str = "/console/reset";
