#if !canImport(CryptoKit)
  /// A function that makes a short digest of any number of bytes.
  package protocol HashFunction {
    /// The name by which OpenSSL knows it, and how long its digest is.
    static var algorithm: DigestAlgorithm { get }
  }

  /// The bytes of a digest.
  package struct HashDigest: Sendable, Hashable, Sequence {
    let bytes: [UInt8]

    /// Goes through the bytes.
    package func makeIterator() -> IndexingIterator<[UInt8]> { bytes.makeIterator() }
  }

  /// A digest that is being made of bytes that come one after the other.
  package struct RunningHash<Function: HashFunction>: HashFunction, Sendable {
    /// What the digest is called.
    package typealias Digest = HashDigest

    /// The algorithm of its name.
    package static var algorithm: DigestAlgorithm { Function.algorithm }

    private var context = DigestContext(Function.algorithm)

    /// The digest of nothing yet.
    package init() {}

    /// Adds bytes.
    package mutating func update(data: some Collection<UInt8>) {
      if !isKnownUniquelyReferenced(&context) { context = DigestContext(copying: context) }
      context.update(data)
    }

    /// The digest of everything so far; more can be added afterwards.
    package func finalize() -> HashDigest { HashDigest(bytes: DigestContext(copying: context).finish()) }

    /// The digest of bytes in memory.
    package static func hash(data: some Collection<UInt8>) -> HashDigest {
      HashDigest(bytes: algorithm.digest(of: data))
    }
  }

  /// SHA-256 (FIPS 180-4), 32 bytes.
  package typealias SHA256 = RunningHash<SHA256Name>

  /// SHA-512 (FIPS 180-4), 64 bytes.
  package typealias SHA512 = RunningHash<SHA512Name>

  /// Digests that prove nothing against intent, and that protocols ask for all the same.
  package enum Insecure {
    /// SHA-1 (FIPS 180-4), 20 bytes.
    package typealias SHA1 = RunningHash<SHA1Name>

    /// MD5 (RFC 1321), 16 bytes.
    package typealias MD5 = RunningHash<MD5Name>
  }

  /// Stands for SHA-256.
  package enum SHA256Name: HashFunction {
    /// OpenSSL's.
    package static let algorithm = DigestAlgorithm("SHA2-256", length: 32)
  }

  /// Stands for SHA-512.
  package enum SHA512Name: HashFunction {
    /// OpenSSL's.
    package static let algorithm = DigestAlgorithm("SHA2-512", length: 64)
  }

  /// Stands for SHA-1.
  package enum SHA1Name: HashFunction {
    /// OpenSSL's.
    package static let algorithm = DigestAlgorithm("SHA1", length: 20)
  }

  /// Stands for MD5.
  package enum MD5Name: HashFunction {
    /// OpenSSL's.
    package static let algorithm = DigestAlgorithm("MD5", length: 16)
  }
#endif
