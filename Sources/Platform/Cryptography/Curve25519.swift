#if !canImport(CryptoKit)
  /// The elliptic curve of X25519 (RFC 7748).
  package enum Curve25519 {
    /// Keys by which two sides come to a secret.
    package enum KeyAgreement {
      /// A key that its owner keeps.
      package struct PrivateKey: Sendable {
        private let secret: SecretBytes

        /// A new key, from the system's generator.
        package init() {
          var generator = SystemRandomNumberGenerator()
          secret = SecretBytes((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
        }

        /// A key of 32 bytes.
        package init(rawRepresentation bytes: some Collection<UInt8>) throws(CryptographyError) {
          guard bytes.count == 32 else { throw .incorrectParameterSize }
          secret = SecretBytes(bytes)
        }

        /// The 32 bytes.
        package var rawRepresentation: [UInt8] { secret.bytes }

        /// What others may know of it.
        package var publicKey: PublicKey { PublicKey(OpenSSL.publicKey(of: secret)) }

        /// What both owners can work out, and no one else can.
        ///
        /// - Throws: where the other key is of low order, so that everyone can.
        package func sharedSecretFromKeyAgreement(with other: PublicKey) throws(CryptographyError) -> SharedSecret {
          guard let shared = OpenSSL.sharedSecret(secret, with: other.rawRepresentation) else { throw .unusableKey }
          return SharedSecret(secret: shared)
        }
      }

      /// A key that is published.
      package struct PublicKey: Sendable {
        /// The 32 bytes.
        package let rawRepresentation: [UInt8]

        init(_ bytes: [UInt8]) { rawRepresentation = bytes }

        /// A key of 32 bytes.
        package init(rawRepresentation bytes: some Collection<UInt8>) throws(CryptographyError) {
          guard bytes.count == 32 else { throw .incorrectParameterSize }
          rawRepresentation = Array(bytes)
        }
      }
    }
  }

  /// What two owners of keys have in common.
  package struct SharedSecret: Sendable {
    let secret: SecretBytes

    /// A key made of it.
    package func hkdfDerivedSymmetricKey<Hash: HashFunction>(
      using hash: Hash.Type, salt: some Collection<UInt8>, sharedInfo: some Collection<UInt8>, outputByteCount: Int
    ) -> SymmetricKey {
      HKDF<Hash>.deriveKey(
        inputKeyMaterial: SymmetricKey(secret), salt: salt, info: sharedInfo, outputByteCount: outputByteCount)
    }
  }
#endif
