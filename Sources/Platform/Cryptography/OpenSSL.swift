#if !canImport(CryptoKit)
  internal import COpenSSL

  /// OpenSSL's libcrypto, version 3: the one place that calls it.
  ///
  /// What it makes of valid arguments fails only where no memory is left, or where the library was built without the algorithm: both end the
  /// process, since neither says anything of the data.
  enum OpenSSL {
    /// A context of its own: the configuration files of the system, which can take algorithms away, do not change it.
    ///
    /// OpenSSL's contexts and algorithms may be used by several threads at once.
    nonisolated(unsafe) static let library: OpaquePointer = {
      // Without this the library takes itself apart when the process ends, while other threads may be using it.
      OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
      guard let library = unsafe OSSL_LIB_CTX_new() else { preconditionFailure("libcrypto has no memory left") }
      return unsafe library
    }()

    nonisolated(unsafe) private static let cipher: OpaquePointer = {
      guard let cipher = unsafe EVP_CIPHER_fetch(library, "ChaCha20-Poly1305", nil) else {
        preconditionFailure("libcrypto has no memory left, or no ChaCha20-Poly1305")
      }
      return unsafe cipher
    }()

    /// The code of a message under a key (HMAC, RFC 2104).
    static func authenticationCode(
      of message: some Collection<UInt8>, key: SecretBytes, algorithm: DigestAlgorithm
    ) -> [UInt8] {
      var code = [UInt8](repeating: 0, count: algorithm.length)
      let done = unsafe withBytes(message) { message in
        unsafe EVP_Q_mac(
          library, "HMAC", nil, algorithm.name, nil, key.start, key.count, message.baseAddress, message.count, &code,
          code.count, nil) != nil
      }
      precondition(done, "libcrypto has no memory left, or no \(algorithm.name)")
      return code
    }

    /// A key made of another one (HKDF, RFC 5869).
    static func derivedKey(
      of key: SecretBytes, salt: some Collection<UInt8>, info: some Collection<UInt8>, algorithm: DigestAlgorithm,
      length: Int
    ) -> SecretBytes {
      let derived = SecretBytes(count: length)
      let done = unsafe withBytes(salt) { salt in
        unsafe withBytes(info) { info in
          unsafe lazaret_hkdf(
            library, algorithm.name, key.start, key.count, salt.baseAddress, salt.count, info.baseAddress, info.count,
            derived.start, derived.count) == 1
        }
      }
      precondition(done, "libcrypto has no memory left, or no HKDF")
      return derived
    }

    /// Bytes encrypted by ChaCha20-Poly1305 (RFC 8439) and their tag; nil where they are too many, or a size is wrong.
    ///
    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - nonce: 12 bytes.
    static func seal(
      _ bytes: some Collection<UInt8>, key: SecretBytes, nonce: [UInt8]
    ) -> (sealed: [UInt8], tag: [UInt8])? {
      guard key.count == 32, nonce.count == 12, let size = Int32(exactly: bytes.count) else { return nil }
      var (sealed, tag) = ([UInt8](repeating: 0, count: bytes.count), [UInt8](repeating: 0, count: 16))
      let done = unsafe withBytes(bytes) {
        unsafe lazaret_seal(cipher, key.start, nonce, $0.baseAddress, size, &sealed, &tag)
      }
      precondition(done == 1, "libcrypto has no memory left")
      return (sealed, tag)
    }

    /// What was encrypted; nil where it is not what the tag was made of.
    static func open(
      _ bytes: some Collection<UInt8>, tag: [UInt8], key: SecretBytes, nonce: [UInt8]
    ) -> [UInt8]? {
      guard key.count == 32, nonce.count == 12, tag.count == 16, let size = Int32(exactly: bytes.count) else {
        return nil
      }
      var opened = [UInt8](repeating: 0, count: bytes.count)
      let done = unsafe withBytes(bytes) {
        unsafe lazaret_open(cipher, key.start, nonce, $0.baseAddress, size, tag, &opened)
      }
      precondition(done >= 0, "libcrypto has no memory left")
      return done == 1 ? opened : nil
    }

    /// The public key of an X25519 secret key of 32 bytes (RFC 7748).
    static func publicKey(of secret: SecretBytes) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: 32)
      let done = unsafe secret.count == 32 && lazaret_x25519_public(library, secret.start, &bytes) == 1
      precondition(done, "libcrypto has no memory left, or no X25519")
      return bytes
    }

    /// What a secret key and another's public key have in common; nil where the other is of low order.
    static func sharedSecret(_ secret: SecretBytes, with other: [UInt8]) -> SecretBytes? {
      guard secret.count == 32, other.count == 32 else { return nil }
      let shared = SecretBytes(count: 32)
      let done = unsafe lazaret_x25519_shared(library, secret.start, other, shared.start)
      precondition(done >= 0, "libcrypto has no memory left, or no X25519")
      return done == 1 ? shared : nil
    }

    /// Whether two texts of bytes are the same, in a time that does not tell where they differ.
    static func isEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
      unsafe first.count == second.count && CRYPTO_memcmp(first, second, first.count) == 0
    }

    /// Calls with the bytes in one piece.
    static func withBytes<Result>(
      _ bytes: some Collection<UInt8>, _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
      if let result = bytes.withContiguousStorageIfAvailable(body) { return result }
      return unsafe Array(bytes).withUnsafeBufferPointer(body)
    }
  }

  /// An algorithm that makes digests.
  @safe package struct DigestAlgorithm: @unchecked Sendable {
    let name: String
    let length: Int
    fileprivate let function: OpaquePointer

    init(_ name: String, length: Int) {
      guard let function = unsafe EVP_MD_fetch(OpenSSL.library, name, nil) else {
        preconditionFailure("libcrypto has no memory left, or no \(name)")
      }
      self.name = name
      self.length = length
      unsafe self.function = unsafe function
    }

    /// The digest of bytes in memory.
    func digest(of bytes: some Collection<UInt8>) -> [UInt8] {
      var digest = [UInt8](repeating: 0, count: length)
      let done = unsafe OpenSSL.withBytes(bytes) {
        unsafe EVP_Digest($0.baseAddress, $0.count, &digest, nil, function, nil)
      }
      precondition(done == 1, "libcrypto has no memory left")
      return digest
    }
  }

  /// The state of a digest that is being made.
  ///
  /// It is changed by its only owner; what shares it copies it first.
  @safe final class DigestContext: @unchecked Sendable {
    private let algorithm: DigestAlgorithm
    private let context: OpaquePointer

    private init(of algorithm: DigestAlgorithm) {
      guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("libcrypto has no memory left") }
      self.algorithm = algorithm
      unsafe self.context = unsafe context
    }

    convenience init(_ algorithm: DigestAlgorithm) {
      self.init(of: algorithm)
      let done = unsafe EVP_DigestInit_ex2(context, algorithm.function, nil)
      precondition(done == 1, "libcrypto has no memory left")
    }

    convenience init(copying other: DigestContext) {
      self.init(of: other.algorithm)
      let done = unsafe EVP_MD_CTX_copy_ex(context, other.context)
      precondition(done == 1, "libcrypto has no memory left")
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    func update(_ bytes: some Collection<UInt8>) {
      let done = unsafe OpenSSL.withBytes(bytes) { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
      precondition(done == 1, "libcrypto has no memory left")
    }

    /// The digest; nothing can be added afterwards.
    func finish() -> [UInt8] {
      var digest = [UInt8](repeating: 0, count: algorithm.length)
      let done = unsafe EVP_DigestFinal_ex(context, &digest, nil)
      precondition(done == 1, "libcrypto has no memory left")
      return digest
    }
  }

  /// Bytes that are overwritten before their memory is given back.
  @safe final class SecretBytes: @unchecked Sendable {
    private let buffer: UnsafeMutableBufferPointer<UInt8>

    init(count: Int) {
      unsafe buffer = .allocate(capacity: count)
      unsafe buffer.initialize(repeating: 0)
    }

    convenience init(_ bytes: some Collection<UInt8>) {
      self.init(count: bytes.count)
      for (index, byte) in bytes.enumerated() where index < count { unsafe buffer[index] = byte }
    }

    deinit {
      unsafe OPENSSL_cleanse(buffer.baseAddress, buffer.count)
      unsafe buffer.deallocate()
    }

    var count: Int { unsafe buffer.count }

    /// Where they begin; never nil, since an empty key is a key all the same.
    fileprivate var start: UnsafeMutablePointer<UInt8>? { unsafe buffer.baseAddress }

    /// A copy, which is not overwritten.
    var bytes: [UInt8] { unsafe Array(buffer) }
  }
#endif
