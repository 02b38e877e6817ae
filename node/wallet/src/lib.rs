//! The wallet: one key that is the node's identity on the chain and on the network.
//!
//! At first start 24 words are drawn, the key derived from them, and both stored encrypted in `wallet.json`.
//! Later starts read that file. It is never overwritten, and a file that cannot be read stops the node instead
//! of giving it a new identity. Into one of another program the first start writes that a node uses it, and
//! changes nothing else. Other modules get a [`Signer`] rather than the key; the two libraries that
//! need the raw key (network and chain) get it by name.

mod keystore;
mod phrase;
mod signer;

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use farthing_os::{
    file_names, files,
    lock::{DataFolder, DataFolderError},
    secret::SecretText,
};
use farthing_values::{Address, Domain, PublicKey, SecretKey};
use zeroize::Zeroizing;

pub use self::{
    keystore::KeystoreError,
    phrase::PhraseError,
    signer::{PolicyError, Signer},
};
use self::{
    keystore::{Keystore, KeystoreContents, SCRYPT_LOG_N},
    phrase::ENTROPY_BYTES,
};

/// Random bytes of a passphrase that this node makes, which stand in its file in hex.
const PASSPHRASE_BYTES: usize = 32;
/// Work factor of scrypt behind such a passphrase: nobody tries 2^256 of them, however little each try costs.
const SCRYPT_LOG_N_OF_RANDOM: u8 = 12;

/// Creates a node's folder when it is missing and locks it. One that has something else in it becomes no node's: it is known by
/// a wallet with a ledger beside it. With a wallet alone it becomes one while nothing else is in it.
///
/// # Errors
/// [`DataFolderError`]; a folder that is refused is left as it is.
pub fn lock_folder(data_dir: &Path) -> Result<DataFolder, DataFolderError> {
    DataFolder::lock(data_dir, Keystore::is_in)
}

/// The node's key and, where this node made it, the phrase behind it. Cheap to clone.
#[derive(Clone)]
pub struct Wallet {
    key: Arc<SecretKey>,
    phrase: Option<SecretText>,
}

/// A wallet, and how it came to be.
#[derive(Debug)]
pub struct OpenedWallet {
    pub wallet: Wallet,
    /// Made just now; the user should back up its phrase.
    pub created: bool,
    /// The passphrase lies beside the wallet, which protects copies of the wallet file only.
    pub unattended: bool,
}

/// An error that leaves the node without a wallet to work with.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    #[error("{path} cannot be read or written", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is encrypted and the node has no passphrase", path = .path.display())]
    NoPassphrase { path: PathBuf },
    #[error("{path} cannot be used with the passphrase from {passphrase_from}: {reason}", path = .path.display())]
    Unusable { path: PathBuf, passphrase_from: String, reason: KeystoreError },
    #[error(transparent)]
    Phrase(#[from] PhraseError),
    #[error("no wallet could be made")]
    NotMade,
}

impl WalletError {
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::Io { source, .. } => Some(files::next_step(source)),
            Self::NoPassphrase { .. } => Some("set FARTHING_WALLET__PASSPHRASE_FILE"),
            Self::Unusable { reason: KeystoreError::Malformed | KeystoreError::Inconsistent, .. } => {
                Some("restore it from a backup")
            }
            Self::NotMade => Some("try again"),
            Self::Unusable { .. } | Self::Phrase(_) => None,
        }
    }
}

impl Wallet {
    /// Reads the wallet in `data_dir`, or makes one. Takes about a second of one core and 256 MiB for the time
    /// being where the passphrase is the user's, by design of its protection; call it outside of async tasks.
    ///
    /// # Errors
    /// [`WalletError`]. An existing file is never replaced.
    pub fn open_or_create(
        data_dir: &Path,
        passphrase: Option<&SecretText>,
    ) -> Result<OpenedWallet, WalletError> {
        let own = Files::in_folder(data_dir);
        match std::fs::read_to_string(&own.wallet) {
            Ok(json) => {
                files::keep_private(&own.wallet);
                own.open(&Zeroizing::new(json), passphrase)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => own.create(passphrase, SCRYPT_LOG_N),
            Err(source) => Err(WalletError::Io { path: own.wallet, source }),
        }
    }

    /// Reads the wallet in `data_dir`. Takes as long as [`Wallet::open_or_create`].
    ///
    /// # Errors
    /// [`WalletError`]; none is made where none is.
    pub fn open(data_dir: &Path, passphrase: Option<&SecretText>) -> Result<Self, WalletError> {
        let files = Files::in_folder(data_dir);
        let json = std::fs::read_to_string(&files.wallet);
        let json = json.map_err(|source| WalletError::Io { path: files.wallet.clone(), source })?;
        Ok(files.open(&Zeroizing::new(json), passphrase)?.wallet)
    }

    /// Stores the wallet of a backup phrase in `data_dir`. Takes as long as [`Wallet::open_or_create`].
    ///
    /// # Errors
    /// [`WalletError`]. An existing file is never replaced.
    pub fn import(
        data_dir: &Path,
        phrase: &SecretText,
        passphrase: Option<&SecretText>,
    ) -> Result<OpenedWallet, WalletError> {
        Files::in_folder(data_dir).import(phrase, passphrase, SCRYPT_LOG_N)
    }

    /// Checks that a text is a backup phrase.
    ///
    /// # Errors
    /// [`PhraseError`], which does not repeat it.
    pub fn check_phrase(phrase: &SecretText) -> Result<(), PhraseError> {
        phrase::derive(phrase).map(drop)
    }

    /// Returns whether `data_dir` has a wallet, readable or not.
    pub fn exists(data_dir: &Path) -> bool {
        data_dir.join(file_names::WALLET).symlink_metadata().is_ok()
    }

    /// Returns whether another program may have written the wallet in `data_dir`, and no node have used it.
    pub fn is_brought(data_dir: &Path) -> bool {
        let json = std::fs::read_to_string(data_dir.join(file_names::WALLET)).unwrap_or_default();
        Keystore::from_json(&json).is_ok_and(|keystore| !keystore.is_used())
    }

    /// Has a wallet that was brought say itself that a node uses it: from now on it does not start without its ledger.
    ///
    /// # Errors
    /// [`WalletError::Io`]; the file is then as it was.
    pub fn note_use(data_dir: &Path) -> Result<(), WalletError> {
        if !Self::is_brought(data_dir) {
            return Ok(());
        }
        let path = data_dir.join(file_names::WALLET);
        let write = || {
            let used = Keystore::with_use(&std::fs::read_to_string(&path)?);
            // A link of the user's own stays one.
            files::replace_private(&path.canonicalize()?, used.as_bytes())
        };
        write().map_err(|source| WalletError::Io { path, source })
    }

    /// A wallet of a key that is kept elsewhere.
    pub fn from_key(key: SecretKey) -> Self {
        Self { key: Arc::new(key), phrase: None }
    }

    pub fn address(&self) -> Address {
        self.key.address()
    }

    pub fn public_key(&self) -> PublicKey {
        self.key.public_key()
    }

    /// The backup phrase, for showing it to its owner. Absent for keys that came without one.
    pub fn phrase(&self) -> Option<&SecretText> {
        self.phrase.as_ref()
    }

    /// Signs for the contract and chain of `domain`.
    pub fn signer(&self, domain: Domain) -> Signer {
        Signer::new(Arc::clone(&self.key), domain)
    }

    /// The key for the network's transport, which proves the wallet to every peer.
    pub fn secret_for_network(&self) -> SecretKey {
        SecretKey::clone(&self.key)
    }

    /// The key for the chain's transaction writer.
    pub fn secret_for_chain(&self) -> SecretKey {
        SecretKey::clone(&self.key)
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wallet({})", self.address())
    }
}

struct Files {
    wallet: PathBuf,
    passphrase: PathBuf,
}

impl Files {
    fn in_folder(data_dir: &Path) -> Self {
        Self { wallet: data_dir.join(file_names::WALLET), passphrase: data_dir.join(file_names::PASSPHRASE) }
    }

    fn open(&self, json: &str, configured: Option<&SecretText>) -> Result<OpenedWallet, WalletError> {
        let (passphrase, passphrase_from) = match configured {
            Some(passphrase) => (passphrase.clone(), "the configuration".to_owned()),
            None => match self.stored_passphrase()? {
                Some(passphrase) => (passphrase, self.passphrase.display().to_string()),
                None => return Err(WalletError::NoPassphrase { path: self.wallet.clone() }),
            },
        };
        let contents = Keystore::from_json(json)
            .and_then(|keystore| keystore.open(&passphrase))
            .map_err(|reason| WalletError::Unusable { path: self.wallet.clone(), passphrase_from, reason })?;
        Ok(OpenedWallet::new(contents, false, configured.is_none()))
    }

    fn create(&self, configured: Option<&SecretText>, log_n: u8) -> Result<OpenedWallet, WalletError> {
        let mut entropy = Zeroizing::new([0; ENTROPY_BYTES]);
        getrandom::fill(&mut *entropy).map_err(|_| WalletError::NotMade)?;
        let phrase = phrase::phrase(&entropy).map_err(|_| WalletError::NotMade)?;
        self.import(&phrase, configured, log_n)
    }

    fn import(
        &self,
        phrase: &SecretText,
        configured: Option<&SecretText>,
        log_n: u8,
    ) -> Result<OpenedWallet, WalletError> {
        // The passphrase is durable before anything depends on it; one left by an interrupted start is used.
        let given = configured.cloned().map_or_else(|| self.stored_passphrase(), |given| Ok(Some(given)))?;
        let (passphrase, log_n) = match given {
            Some(passphrase) => (passphrase, log_n),
            None => (self.make_passphrase()?, SCRYPT_LOG_N_OF_RANDOM),
        };
        let key = phrase::derive(phrase)?;
        // A shorter phrase has its key here, and its words with whoever wrote them down.
        let entropy = phrase::entropy(phrase);
        let keystore =
            Keystore::seal(&key, entropy.as_ref(), &passphrase, log_n).map_err(|_| WalletError::NotMade)?;
        files::create_private(&self.wallet, keystore.to_json().as_bytes())
            .map_err(|source| WalletError::Io { path: self.wallet.clone(), source })?;
        let phrase = entropy.map(|_| phrase.clone());
        Ok(OpenedWallet::new(KeystoreContents { key, phrase }, true, configured.is_none()))
    }

    fn stored_passphrase(&self) -> Result<Option<SecretText>, WalletError> {
        match std::fs::read_to_string(&self.passphrase) {
            Ok(text) => Ok(Some(SecretText::new(Zeroizing::new(text).trim_end()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(WalletError::Io { path: self.passphrase.clone(), source }),
        }
    }

    fn make_passphrase(&self) -> Result<SecretText, WalletError> {
        let mut random = Zeroizing::new([0; PASSPHRASE_BYTES]);
        getrandom::fill(&mut *random).map_err(|_| WalletError::NotMade)?;
        let passphrase = SecretText::new(hex::encode(*random));
        files::create_private(&self.passphrase, passphrase.expose().as_bytes())
            .map_err(|source| WalletError::Io { path: self.passphrase.clone(), source })?;
        Ok(passphrase)
    }
}

impl OpenedWallet {
    fn new(contents: KeystoreContents, created: bool, unattended: bool) -> Self {
        let KeystoreContents { key, phrase } = contents;
        Self { wallet: Wallet { key: Arc::new(key), phrase }, created, unattended }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Creates a wallet as `open_or_create` does at first start, with cheaper protection.
    fn create(folder: &Path, passphrase: Option<&str>) -> OpenedWallet {
        let passphrase = passphrase.map(SecretText::new);
        Files::in_folder(folder).create(passphrase.as_ref(), 10).unwrap()
    }

    /// Stores the wallet of a shorter phrase.
    fn import(folder: &Path, passphrase: &str) -> OpenedWallet {
        let words = SecretText::new(format!("{}about", "abandon ".repeat(11)));
        Files::in_folder(folder).import(&words, Some(&SecretText::new(passphrase)), 10).unwrap()
    }

    fn open(folder: &Path, passphrase: Option<&str>) -> Result<OpenedWallet, WalletError> {
        Wallet::open_or_create(folder, passphrase.map(SecretText::new).as_ref())
    }

    #[test]
    fn a_wallet_is_made_at_first_start_and_kept_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let first = open(folder.path(), None).unwrap();
        assert!(first.created && first.unattended);
        let second = open(folder.path(), None).unwrap();
        assert!(!second.created);
        assert_eq!(second.wallet.address(), first.wallet.address());
        assert_eq!(second.wallet.phrase().unwrap().expose().split(' ').count(), 24);
        for name in [file_names::WALLET, file_names::PASSPHRASE] {
            let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_folder_is_a_nodes_by_its_wallet_and_its_ledger() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("notes"), "").unwrap();
        let wallet = folder.path().join(file_names::WALLET);
        std::fs::write(&wallet, "{}").unwrap();
        assert!(matches!(lock_folder(folder.path()), Err(DataFolderError::Occupied { .. })));
        std::fs::remove_file(&wallet).unwrap();
        create(folder.path(), None);
        assert!(matches!(lock_folder(folder.path()), Err(DataFolderError::Occupied { .. })));
        std::fs::write(folder.path().join(file_names::LEDGER), "").unwrap();
        lock_folder(folder.path()).unwrap();
        let imported = tempfile::tempdir().unwrap();
        import(imported.path(), "own words");
        lock_folder(imported.path()).unwrap();
    }

    #[test]
    fn a_wallet_that_was_brought_says_once_a_node_uses_it_and_is_otherwise_as_it_was() {
        let [folder, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let is_brought = || Wallet::is_brought(folder.path());
        assert!(!is_brought(), "there is none");
        Wallet::note_use(folder.path()).unwrap();
        let first = import(folder.path(), "own words");
        assert!(!is_brought(), "a node imported it");
        // What another program writes has members that nobody here knows, and may lie on another disk.
        let (path, lies_at) = (folder.path().join(file_names::WALLET), elsewhere.path().join("my wallet"));
        let brought = std::fs::read_to_string(&path).unwrap().replace("x-farthing", "x-other");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&lies_at, &brought).unwrap();
        std::os::unix::fs::symlink(&lies_at, &path).unwrap();
        assert!(is_brought());
        for _ in 0..2 {
            Wallet::note_use(folder.path()).unwrap();
            assert!(!is_brought() && path.is_symlink());
            let used = std::fs::read_to_string(&lies_at).unwrap();
            assert!(used.ends_with(&brought[1..]) && used.matches("x-farthing").count() == 1, "{used}");
            assert_eq!(std::fs::metadata(&lies_at).unwrap().permissions().mode() & 0o777, 0o600);
            let opened = open(folder.path(), Some("own words")).unwrap();
            assert_eq!(opened.wallet.address(), first.wallet.address());
        }
    }

    #[test]
    fn a_persons_passphrase_is_stretched_and_one_that_the_node_made_is_not() {
        let stretched = |passphrase: Option<&str>| {
            let folder = tempfile::tempdir().unwrap();
            open(folder.path(), passphrase).unwrap();
            let json = std::fs::read_to_string(folder.path().join(file_names::WALLET)).unwrap();
            json.contains("\"n\": 262144")
        };
        assert!(stretched(Some("own words")) && stretched(Some(&"a1".repeat(32))));
        assert!(!stretched(None));
    }

    #[test]
    fn a_passphrase_of_the_users_own_is_stored_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let first = create(folder.path(), Some("own words"));
        assert!(!first.unattended);
        assert!(!folder.path().join(file_names::PASSPHRASE).exists());
        assert_eq!(open(folder.path(), Some("own words")).unwrap().wallet.address(), first.wallet.address());
        assert!(matches!(open(folder.path(), None), Err(WalletError::NoPassphrase { .. })));
    }

    #[test]
    fn a_wallet_that_cannot_be_opened_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None);
        let path = folder.path().join(file_names::WALLET);
        let before = std::fs::read(&path).unwrap();
        let wrong = open(folder.path(), Some("wrong")).unwrap_err().to_string();
        let why =
            "cannot be used with the passphrase from the configuration: the passphrase does not open it";
        assert!(wrong.contains(why), "{wrong}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        std::fs::write(&path, "{").unwrap();
        assert!(matches!(open(folder.path(), None), Err(WalletError::Unusable { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"{");
    }

    #[test]
    fn two_first_starts_at_once_cannot_both_win() {
        let folder = tempfile::tempdir().unwrap();
        let first = create(folder.path(), None);
        let second = Files::in_folder(folder.path()).create(None, 10);
        assert!(matches!(second, Err(WalletError::Io { .. })));
        assert_eq!(open(folder.path(), None).unwrap().wallet.address(), first.wallet.address());
    }

    #[test]
    fn a_passphrase_left_by_an_interrupted_start_is_used() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file_names::PASSPHRASE), "left over\n").unwrap();
        let first = create(folder.path(), None);
        assert_eq!(open(folder.path(), Some("left over")).unwrap().wallet.address(), first.wallet.address());
    }

    #[test]
    fn neither_key_nor_phrase_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let opened = create(folder.path(), None);
        let shown = format!("{opened:?}");
        let phrase = opened.wallet.phrase().unwrap();
        // Pairs: a single word, such as `true`, may stand there for another reason.
        let words: Vec<&str> = phrase.expose().split(' ').collect();
        assert!(words.windows(2).all(|pair| !shown.contains(&pair.join(" "))), "{shown}");
        assert!(!shown.contains(&hex::encode(opened.wallet.secret_for_chain().to_bytes())));
    }
}
