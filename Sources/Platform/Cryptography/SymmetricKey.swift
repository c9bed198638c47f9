#if !canImport(CryptoKit)
  /// A key that two sides share; its memory is overwritten when it is no longer needed.
  package struct SymmetricKey: Sendable {
    let secret: SecretBytes

    init(_ secret: SecretBytes) { self.secret = secret }

    /// A key of these bytes.
    package init(data: some Collection<UInt8>) { secret = SecretBytes(data) }
  }

  /// Codes that only a holder of the key can make (RFC 2104).
  package enum HMAC<Hash: HashFunction> {
    /// The code of a message.
    package static func authenticationCode(for message: some Collection<UInt8>, using key: SymmetricKey) -> HashDigest {
      HashDigest(bytes: OpenSSL.authenticationCode(of: message, key: key.secret, algorithm: Hash.algorithm))
    }

    /// Whether a code is that of a message.
    package static func isValidAuthenticationCode(
      _ code: [UInt8], authenticating message: some Collection<UInt8>, using key: SymmetricKey
    ) -> Bool {
      OpenSSL.isEqual(code, authenticationCode(for: message, using: key).bytes)
    }
  }

  /// Keys made of another one (RFC 5869).
  package enum HKDF<Hash: HashFunction> {
    /// A key for one purpose.
    package static func deriveKey(
      inputKeyMaterial key: SymmetricKey, salt: some Collection<UInt8>, info: some Collection<UInt8>,
      outputByteCount length: Int
    ) -> SymmetricKey {
      SymmetricKey(
        OpenSSL.derivedKey(of: key.secret, salt: salt, info: info, algorithm: Hash.algorithm, length: length))
    }
  }
#endif
