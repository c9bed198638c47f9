// CryptoKit on Apple's systems; elsewhere the same names over the system's OpenSSL, which the system keeps up to date.
#if canImport(CryptoKit)
  @_exported public import CryptoKit
#else
  package protocol HashFunction { static var algorithm: DigestAlgorithm { get } }

  package struct HashDigest: Sendable, Hashable, Sequence {
    let bytes: [UInt8]

    package func makeIterator() -> IndexingIterator<[UInt8]> { bytes.makeIterator() }
  }

  /// An incremental digest.
  package struct RunningHash<Function: HashFunction>: HashFunction, Sendable {
    typealias Digest = HashDigest

    package static var algorithm: DigestAlgorithm { Function.algorithm }

    private var context = DigestContext(Function.algorithm)

    package init() {}

    package mutating func update(data: some Collection<UInt8>) {
      if !isKnownUniquelyReferenced(&context) { context = DigestContext(copying: context) }
      context.update(data)
    }

    /// Returns the digest so far; more bytes may follow.
    package func finalize() -> HashDigest { HashDigest(bytes: DigestContext(copying: context).finish()) }

    package static func hash(data: some Collection<UInt8>) -> HashDigest {
      HashDigest(bytes: algorithm.digest(of: data))
    }
  }

  /// SHA-256 (FIPS 180-4), 32 bytes.
  package typealias SHA256 = RunningHash<SHA256Name>

  /// SHA-512 (FIPS 180-4), 64 bytes.
  package typealias SHA512 = RunningHash<SHA512Name>

  /// Broken digests that protocols still require.
  package enum Insecure {
    /// SHA-1 (FIPS 180-4), 20 bytes.
    package typealias SHA1 = RunningHash<SHA1Name>

    /// MD5 (RFC 1321), 16 bytes.
    package typealias MD5 = RunningHash<MD5Name>
  }

  package enum SHA256Name: HashFunction { package static let algorithm = DigestAlgorithm("SHA2-256", length: 32) }

  package enum SHA512Name: HashFunction { package static let algorithm = DigestAlgorithm("SHA2-512", length: 64) }

  package enum SHA1Name: HashFunction { package static let algorithm = DigestAlgorithm("SHA1", length: 20) }

  package enum MD5Name: HashFunction { package static let algorithm = DigestAlgorithm("MD5", length: 16) }

  /// A shared key; its memory is overwritten after use.
  package struct SymmetricKey: Sendable {
    let secret: SecretBytes

    init(_ secret: SecretBytes) { self.secret = secret }

    package init(data: some Collection<UInt8>) { secret = SecretBytes(data) }
  }

  /// RFC 2104.
  package enum HMAC<Hash: HashFunction> {
    package static func authenticationCode(for message: some Collection<UInt8>, using key: SymmetricKey) -> HashDigest {
      HashDigest(bytes: OpenSSL.authenticationCode(of: message, key: key.secret, algorithm: Hash.algorithm))
    }

    package static func isValidAuthenticationCode(
      _ code: [UInt8], authenticating message: some Collection<UInt8>, using key: SymmetricKey
    ) -> Bool {
      OpenSSL.isEqual(code, authenticationCode(for: message, using: key).bytes)
    }
  }

  /// RFC 5869.
  package enum HKDF<Hash: HashFunction> {
    package static func deriveKey(
      inputKeyMaterial key: SymmetricKey, salt: some Collection<UInt8>, info: some Collection<UInt8>,
      outputByteCount length: Int
    ) -> SymmetricKey {
      SymmetricKey(
        OpenSSL.derivedKey(of: key.secret, salt: salt, info: info, algorithm: Hash.algorithm, length: length))
    }
  }

  package enum CryptographyError: Error {
    case incorrectParameterSize, authenticationFailure

    /// The other key is of low order and keeps no secret.
    case unusableKey
  }

  /// Authenticated encryption (ChaCha20-Poly1305, RFC 8439).
  package enum ChaChaPoly {
    /// A single-use number of 12 bytes.
    package struct Nonce: Sendable {
      let bytes: [UInt8]

      package init(data: some Collection<UInt8>) throws(CryptographyError) {
        guard data.count == 12 else { throw .incorrectParameterSize }
        bytes = Array(data)
      }
    }

    package struct SealedBox: Sendable {
      let nonce: Nonce

      package let ciphertext: [UInt8]

      package let tag: [UInt8]

      package init(nonce: Nonce, ciphertext: some Collection<UInt8>, tag: some Collection<UInt8>)
        throws(CryptographyError)
      {
        guard tag.count == 16 else { throw .incorrectParameterSize }
        self.nonce = nonce
        self.ciphertext = Array(ciphertext)
        self.tag = Array(tag)
      }
    }

    /// Encrypts under a key of 32 bytes.
    package static func seal(_ message: some Collection<UInt8>, using key: SymmetricKey, nonce: Nonce)
      throws(CryptographyError) -> SealedBox
    {
      guard let (sealed, tag) = OpenSSL.seal(message, key: key.secret, nonce: nonce.bytes) else {
        throw .incorrectParameterSize
      }
      return try SealedBox(nonce: nonce, ciphertext: sealed, tag: tag)
    }

    /// Decrypts.
    ///
    /// - Throws: if authentication fails.
    package static func open(_ box: SealedBox, using key: SymmetricKey) throws(CryptographyError) -> [UInt8] {
      guard let opened = OpenSSL.open(box.ciphertext, tag: box.tag, key: key.secret, nonce: box.nonce.bytes) else {
        throw .authenticationFailure
      }
      return opened
    }
  }

  /// The elliptic curve of X25519 (RFC 7748).
  package enum Curve25519 {
    package enum KeyAgreement {
      package struct PrivateKey: Sendable {
        private let secret: SecretBytes

        package init() { secret = SecretBytes([UInt8].random(32)) }

        package init(rawRepresentation bytes: some Collection<UInt8>) throws(CryptographyError) {
          guard bytes.count == 32 else { throw .incorrectParameterSize }
          secret = SecretBytes(bytes)
        }

        package var rawRepresentation: [UInt8] { secret.bytes }

        package var publicKey: PublicKey { PublicKey(OpenSSL.publicKey(of: secret)) }

        /// Computes the shared secret.
        ///
        /// - Throws: if the other key is of low order, which makes the secret public.
        package func sharedSecretFromKeyAgreement(with other: PublicKey) throws(CryptographyError) -> SharedSecret {
          guard let shared = OpenSSL.sharedSecret(secret, with: other.rawRepresentation) else { throw .unusableKey }
          return SharedSecret(secret: shared)
        }
      }

      package struct PublicKey: Sendable {
        package let rawRepresentation: [UInt8]

        init(_ bytes: [UInt8]) { rawRepresentation = bytes }

        package init(rawRepresentation bytes: some Collection<UInt8>) throws(CryptographyError) {
          guard bytes.count == 32 else { throw .incorrectParameterSize }
          rawRepresentation = Array(bytes)
        }
      }
    }
  }

  package struct SharedSecret: Sendable {
    let secret: SecretBytes

    package func hkdfDerivedSymmetricKey<Hash: HashFunction>(
      using hash: Hash.Type, salt: some Collection<UInt8>, sharedInfo: some Collection<UInt8>, outputByteCount: Int
    ) -> SymmetricKey {
      HKDF<Hash>.deriveKey(
        inputKeyMaterial: SymmetricKey(secret), salt: salt, info: sharedInfo, outputByteCount: outputByteCount)
    }
  }
#endif
