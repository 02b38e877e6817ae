//! The wallet file: Web3 keystore v3 (scrypt, AES-128-CTR, Keccak-256 MAC), which other wallets import.
//!
//! The backup phrase travels in the same file as ethers' `x-ethers` extension: its entropy, encrypted with the
//! second half of the 64 derived bytes. A second extension, `x-farthing`, says that a node uses the wallet. Readers that
//! do not know them ignore both.

use aes::{Aes128, Aes256};
use ctr::{
    Ctr128BE,
    cipher::{KeyIvInit, StreamCipher},
};
use farthing_os::secret::SecretText;
use farthing_values::{SecretKey, keccak256};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::phrase::{self, DERIVATION_PATH, Entropy};

/// Work factor of scrypt as the keystore definition recommends: about a second and 256 MiB.
pub(super) const SCRYPT_LOG_N: u8 = 18;
const SCRYPT_R: u32 = 8;
const SCRYPT_P: u32 = 1;
/// A file may ask for this much at the most, so that a foreign one cannot exhaust the memory: 1 GiB.
const SCRYPT_N_TIMES_R_MAX: u64 = 1 << 23;

/// The beginning of what this program writes about itself into its files.
const CLIENT: &str = "farthing/";

type Derived = Zeroizing<[u8; 64]>;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Keystore {
    version: u8,
    id: String,
    /// Without `0x`, as the definition's examples have it.
    #[serde(default)]
    address: String,
    #[serde(alias = "Crypto")]
    crypto: Crypto,
    #[serde(rename = "x-ethers", default, skip_serializing_if = "Option::is_none")]
    phrase: Option<EncryptedPhrase>,
    /// A node uses it, and keeps beside it what it promised and earned.
    #[serde(rename = "x-farthing", default, skip_serializing_if = "Option::is_none")]
    used: Option<serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Crypto {
    cipher: String,
    cipherparams: CipherParams,
    ciphertext: String,
    kdf: String,
    kdfparams: KdfParams,
    mac: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct CipherParams {
    iv: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct KdfParams {
    dklen: u32,
    n: u64,
    r: u32,
    p: u32,
    salt: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EncryptedPhrase {
    client: String,
    mnemonic_counter: String,
    mnemonic_ciphertext: String,
    path: String,
    locale: String,
    version: String,
}

/// The reason that a wallet file gives no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeystoreError {
    #[error("it is not a Web3 keystore of version 3 with scrypt and aes-128-ctr")]
    Malformed,
    #[error("the passphrase does not open it")]
    WrongPassphrase,
    #[error("its parts contradict each other")]
    Inconsistent,
    #[error("the system gave no randomness or memory for it")]
    Resources,
}

/// The contents of a wallet file.
pub(super) struct KeystoreContents {
    pub(super) key: SecretKey,
    /// Absent in files of other programs.
    pub(super) phrase: Option<SecretText>,
}

/// The values that must never repeat.
struct Fresh {
    salt: [u8; 32],
    key_iv: [u8; 16],
    phrase_iv: [u8; 16],
}

impl Fresh {
    fn random() -> Result<Self, KeystoreError> {
        let mut fresh = Self { salt: [0; 32], key_iv: [0; 16], phrase_iv: [0; 16] };
        for bytes in [&mut fresh.salt[..], &mut fresh.key_iv, &mut fresh.phrase_iv] {
            getrandom::fill(bytes).map_err(|_| KeystoreError::Resources)?;
        }
        Ok(fresh)
    }
}

impl Keystore {
    /// Encrypts `key` and, where there is one, the entropy of its phrase, for a node that uses it.
    pub(super) fn seal(
        key: &SecretKey,
        entropy: Option<&Entropy>,
        passphrase: &SecretText,
        log_n: u8,
    ) -> Result<Self, KeystoreError> {
        let fresh = Fresh::random()?;
        let kdf =
            KdfParams { dklen: 32, n: 1 << log_n, r: SCRYPT_R, p: SCRYPT_P, salt: hex::encode(fresh.salt) };
        let derived = kdf.derive(passphrase)?;
        let mut ciphertext = Zeroizing::new(key.to_bytes());
        encrypt_key(&derived, &fresh.key_iv, &mut *ciphertext);
        let phrase = entropy.map(|entropy| {
            let mut ciphertext = entropy.clone();
            encrypt_phrase(&derived, &fresh.phrase_iv, &mut *ciphertext);
            EncryptedPhrase {
                client: format!("{CLIENT}{}", env!("CARGO_PKG_VERSION")),
                mnemonic_counter: hex::encode(fresh.phrase_iv),
                mnemonic_ciphertext: hex::encode(*ciphertext),
                path: DERIVATION_PATH.into(),
                locale: "en".into(),
                version: "0.1".into(),
            }
        });
        Ok(Self {
            version: 3,
            id: uuid::Uuid::new_v4().to_string(),
            address: key.address().to_string().trim_start_matches("0x").to_lowercase(),
            crypto: Crypto {
                cipher: "aes-128-ctr".into(),
                cipherparams: CipherParams { iv: hex::encode(fresh.key_iv) },
                mac: hex::encode(mac(&derived, &*ciphertext)),
                ciphertext: hex::encode(*ciphertext),
                kdf: "scrypt".into(),
                kdfparams: kdf,
            },
            phrase,
            used: Some(used()),
        })
    }

    pub(super) fn from_json(json: &str) -> Result<Self, KeystoreError> {
        let keystore: Self = serde_json::from_str(json).map_err(|_| KeystoreError::Malformed)?;
        let known = keystore.version == 3
            && keystore.crypto.cipher == "aes-128-ctr"
            && keystore.crypto.kdf == "scrypt"
            && keystore.crypto.kdfparams.dklen == 32;
        if known { Ok(keystore) } else { Err(KeystoreError::Malformed) }
    }

    pub(super) fn is_in(bytes: &[u8]) -> bool {
        std::str::from_utf8(bytes).is_ok_and(|json| Self::from_json(json).is_ok())
    }

    /// Returns whether a node has used it: it says so, or has a phrase with this program's mark. A program of before did not
    /// say it, and of a phrase that was shorter when it was imported nothing is in the file.
    pub(super) fn is_used(&self) -> bool {
        self.used.is_some() || self.phrase.as_ref().is_some_and(|phrase| phrase.client.starts_with(CLIENT))
    }

    /// Writes into the text of a wallet file that a node uses it; everything else stays as it is.
    pub(super) fn with_use(json: &str) -> String {
        json.replacen('{', &format!("{{\n  \"x-farthing\": {},", used()), 1)
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a keystore consists of text and numbers")
    }

    /// Decrypts key and phrase, and checks that they belong together.
    pub(super) fn open(&self, passphrase: &SecretText) -> Result<KeystoreContents, KeystoreError> {
        let Crypto { ciphertext, cipherparams, mac: expected, kdfparams, .. } = &self.crypto;
        let mut bytes = Zeroizing::new(bytes_of::<32>(ciphertext)?);
        let derived = kdfparams.derive(passphrase)?;
        if !bool::from(mac(&derived, &*bytes).ct_eq(&bytes_of::<32>(expected)?)) {
            return Err(KeystoreError::WrongPassphrase);
        }
        encrypt_key(&derived, &bytes_of(&cipherparams.iv)?, &mut *bytes);
        let key = SecretKey::from_bytes(&bytes).map_err(|_| KeystoreError::Inconsistent)?;
        let phrase = self.phrase.as_ref().map(|phrase| phrase.open(&derived)).transpose()?;
        let belongs =
            |phrase: &SecretText| phrase::derive(phrase).is_ok_and(|own| own.address() == key.address());
        if !phrase.as_ref().is_none_or(belongs) {
            return Err(KeystoreError::Inconsistent);
        }
        Ok(KeystoreContents { key, phrase })
    }
}

/// The extension that says that a node uses a wallet.
fn used() -> serde_json::Value {
    serde_json::json!({ "ledger": true })
}

impl EncryptedPhrase {
    fn open(&self, derived: &Derived) -> Result<SecretText, KeystoreError> {
        let mut entropy = Zeroizing::new(bytes_of(&self.mnemonic_ciphertext)?);
        encrypt_phrase(derived, &bytes_of(&self.mnemonic_counter)?, &mut *entropy);
        phrase::phrase(&entropy).map_err(|_| KeystoreError::Inconsistent)
    }
}

impl KdfParams {
    /// Key, MAC key and phrase key: 16, 16 and 32 bytes. The first 32 do not depend on the length asked for.
    fn derive(&self, passphrase: &SecretText) -> Result<Derived, KeystoreError> {
        let salt = hex::decode(&self.salt).map_err(|_| KeystoreError::Malformed)?;
        let work = self.n.checked_mul(u64::from(self.r));
        let bounded = work.is_some_and(|work| work <= SCRYPT_N_TIMES_R_MAX) && (1..=16).contains(&self.p);
        let log_n = u8::try_from(self.n.trailing_zeros()).map_err(|_| KeystoreError::Malformed)?;
        if !bounded || !self.n.is_power_of_two() {
            return Err(KeystoreError::Malformed);
        }
        let params = scrypt::Params::new(log_n, self.r, self.p, 64).map_err(|_| KeystoreError::Malformed)?;
        let mut derived = Zeroizing::new([0; 64]);
        scrypt::scrypt(passphrase.expose().as_bytes(), &salt, &params, &mut *derived)
            .map_err(|_| KeystoreError::Resources)?;
        Ok(derived)
    }
}

/// Encrypts or decrypts, which is the same in counter mode.
fn encrypt_key(derived: &Derived, iv: &[u8; 16], bytes: &mut [u8]) {
    let mut key = Zeroizing::new([0; 16]);
    key.copy_from_slice(&derived[..16]);
    Ctr128BE::<Aes128>::new((&*key).into(), iv.into()).apply_keystream(bytes);
}

fn encrypt_phrase(derived: &Derived, iv: &[u8; 16], bytes: &mut [u8]) {
    let mut key = Zeroizing::new([0; 32]);
    key.copy_from_slice(&derived[32..]);
    Ctr128BE::<Aes256>::new((&*key).into(), iv.into()).apply_keystream(bytes);
}

fn mac(derived: &Derived, ciphertext: &[u8]) -> [u8; 32] {
    keccak256(&[&derived[16..32], ciphertext])
}

fn bytes_of<const N: usize>(digits: &str) -> Result<[u8; N], KeystoreError> {
    let mut bytes = [0; N];
    hex::decode_to_slice(digits.trim_start_matches("0x"), &mut bytes)
        .map_err(|_| KeystoreError::Malformed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// go-ethereum's test vector with scrypt (password `foo`); its key has 31 bytes.
    const VECTOR_SALT: &str = "711f816911c92d649fb4c84b047915679933555030b3552c1212609b38208c63";
    const VECTOR_IV: &str = "e0c41130a323adc1446fc82f724bca2f";
    const VECTOR_CIPHERTEXT: &str = "9517cd5bdbe69076f9bf5057248c6c050141e970efa36ce53692d5d59a3984";
    const VECTOR_MAC: &str = "d5e116151c6aa71470e67a7d42c9620c75c4d23229847dcc127794f0732b0db5";
    const VECTOR_KEY: &str = "fa7b3db73dc7dfdf8c5fbdb796d741e4488628c41fc4febd9160a866ba0f35";

    fn passphrase(text: &str) -> SecretText {
        SecretText::new(text)
    }

    /// Cheap enough for a test; the cost has a test of its own.
    const LOG_N: u8 = 10;

    fn sealed() -> (Keystore, Entropy) {
        let entropy = Zeroizing::new([9; 32]);
        let key = phrase::derive(&phrase::phrase(&entropy).unwrap()).unwrap();
        (Keystore::seal(&key, Some(&entropy), &passphrase("p"), LOG_N).unwrap(), entropy)
    }

    #[test]
    fn the_cipher_and_its_check_are_those_of_other_wallets() {
        let kdf = KdfParams { dklen: 32, n: 2, r: 8, p: 1, salt: VECTOR_SALT.into() };
        let derived = kdf.derive(&passphrase("foo")).unwrap();
        let mut bytes = hex::decode(VECTOR_CIPHERTEXT).unwrap();
        assert_eq!(hex::encode(mac(&derived, &bytes)), VECTOR_MAC);
        encrypt_key(&derived, &bytes_of(VECTOR_IV).unwrap(), &mut bytes);
        assert_eq!(hex::encode(bytes), VECTOR_KEY);
    }

    #[test]
    fn key_and_phrase_come_back_with_the_passphrase_only() {
        let (keystore, entropy) = sealed();
        let read = Keystore::from_json(&keystore.to_json()).unwrap();
        let contents = read.open(&passphrase("p")).unwrap();
        let phrase = contents.phrase.unwrap();
        assert_eq!(phrase.expose(), phrase::phrase(&entropy).unwrap().expose());
        assert_eq!(phrase::derive(&phrase).unwrap().address(), contents.key.address());
        assert_eq!(read.open(&passphrase("q")).err(), Some(KeystoreError::WrongPassphrase));
    }

    #[test]
    fn two_files_of_one_key_share_no_bytes() {
        let (a, b) = (sealed().0, sealed().0);
        assert_ne!(a.crypto.ciphertext, b.crypto.ciphertext);
        assert_ne!(a.crypto.kdfparams.salt, b.crypto.kdfparams.salt);
    }

    #[test]
    fn nothing_secret_is_readable_in_the_file() {
        let (keystore, entropy) = sealed();
        let json = keystore.to_json();
        let key = keystore.open(&passphrase("p")).unwrap().key;
        assert!(!json.contains(&hex::encode(key.to_bytes())));
        assert!(!json.contains(&hex::encode(*entropy)));
        assert_eq!(keystore.address.len(), 40);
    }

    #[test]
    fn a_phrase_that_is_not_the_keys_own_is_noticed() {
        let (mut keystore, _) = sealed();
        let phrase = keystore.phrase.as_mut().unwrap();
        phrase.mnemonic_counter = hex::encode([1; 16]);
        assert_eq!(keystore.open(&passphrase("p")).err(), Some(KeystoreError::Inconsistent));
    }

    #[test]
    fn a_file_cannot_ask_for_all_memory() {
        for (n, r) in [(1 << 21, 8), (1 << 63, 8), (1 << 20, 16), (3, 8), (0, 8), (1, 0)] {
            let (mut keystore, _) = sealed();
            keystore.crypto.kdfparams.n = n;
            keystore.crypto.kdfparams.r = r;
            assert_eq!(
                keystore.open(&passphrase("p")).err(),
                Some(KeystoreError::Malformed),
                "n = {n}, r = {r}"
            );
        }
    }

    #[test]
    fn what_is_no_keystore_is_told_from_a_wrong_passphrase() {
        let json = sealed().0.to_json();
        assert!(Keystore::from_json(&json).is_ok());
        let cbc = json.replace("aes-128-ctr", "aes-128-cbc");
        let version_4 = json.replace("\"version\": 3", "\"version\": 4");
        for bad in ["", "{}", "[]", &cbc, &version_4] {
            assert_eq!(Keystore::from_json(bad).err(), Some(KeystoreError::Malformed));
        }
    }

    #[test]
    fn what_a_node_has_used_is_told_from_the_files_of_other_wallets() {
        let unsaid = || Keystore { used: None, ..sealed().0 };
        let (new, before) = (sealed().0.to_json(), unsaid().to_json());
        let others = before.replace(CLIENT, "ethers/");
        let without = Keystore { phrase: None, ..unsaid() }.to_json();
        let [others_used, without_used] = [&others, &without].map(|json| Keystore::with_use(json));
        for (json, is_used) in [
            (new, true),
            (before, true),
            (others, false),
            (without, false),
            (others_used, true),
            (without_used, true),
        ] {
            assert!(Keystore::is_in(json.as_bytes()), "{json}");
            assert_eq!(Keystore::from_json(&json).unwrap().is_used(), is_used, "{json}");
        }
        for other in ["{}", "{\"address\":\"0xabc\"}", ""] {
            assert!(!Keystore::is_in(other.as_bytes()), "{other}");
        }
    }
}
