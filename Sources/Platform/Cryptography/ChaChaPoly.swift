#if !canImport(CryptoKit)
  /// Why something could not be encrypted, decrypted or agreed upon.
  package enum CryptographyError: Error {
    /// Something has another size than it must have.
    case incorrectParameterSize

    /// It is not what was encrypted under this key.
    case authenticationFailure

    /// The other key keeps nothing secret.
    case unusableKey
  }

  /// Encryption that also shows whether anything was altered (ChaCha20-Poly1305, RFC 8439).
  package enum ChaChaPoly {
    /// A number that is used once with a key.
    package struct Nonce: Sendable {
      let bytes: [UInt8]

      /// A nonce of 12 bytes.
      package init(data: some Collection<UInt8>) throws(CryptographyError) {
        guard data.count == 12 else { throw .incorrectParameterSize }
        bytes = Array(data)
      }
    }

    /// What was encrypted.
    package struct SealedBox: Sendable {
      /// The nonce it was encrypted with.
      package let nonce: Nonce

      /// As many bytes as were encrypted.
      package let ciphertext: [UInt8]

      /// The 16 bytes that show whether it was altered.
      package let tag: [UInt8]

      /// What was encrypted elsewhere.
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
    /// - Throws: where it is not what was encrypted under this key.
    package static func open(_ box: SealedBox, using key: SymmetricKey) throws(CryptographyError) -> [UInt8] {
      guard let opened = OpenSSL.open(box.ciphertext, tag: box.tag, key: key.secret, nonce: box.nonce.bytes) else {
        throw .authenticationFailure
      }
      return opened
    }
  }
#endif
