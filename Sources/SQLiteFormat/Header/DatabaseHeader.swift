/// The first 100 bytes of a database file (SQLite file format, "The Database Header").
///
/// Fields are kept as found; ``findings`` lists their oddities.
public struct DatabaseHeader: Sendable, Hashable {
  /// The header's length in bytes.
  public static let length = 100

  /// The first 16 bytes of every database: `SQLite format 3` and a zero.
  public static let magic: [UInt8] = Array("SQLite format 3".utf8) + [0]

  /// Whether the file begins with ``magic``.
  public var hasMagic: Bool

  /// The page size as stored at offset 16; 1 stands for 65536.
  public var storedPageSize: Int

  /// The write version, offset 18: 1 for a rollback journal, 2 for WAL.
  public var writeVersion: UInt8

  /// The read version, offset 19: 1 for a rollback journal, 2 for WAL.
  public var readVersion: UInt8

  /// The unused bytes at the end of each page, offset 20.
  public var reservedBytes: UInt8

  /// The maximum embedded payload fraction, offset 21; always 64.
  public var maximumPayloadFraction: UInt8

  /// The minimum embedded payload fraction, offset 22; always 32.
  public var minimumPayloadFraction: UInt8

  /// The leaf payload fraction, offset 23; always 32.
  public var leafPayloadFraction: UInt8

  /// The file change counter, offset 24.
  public var changeCounter: UInt32

  /// The database size in pages, offset 28; see ``isPageCountValid``.
  public var pageCount: UInt32

  /// The first freelist trunk page, offset 32; 0 for none.
  public var firstFreelistTrunk: UInt32

  /// The number of freelist pages, offset 36.
  public var freelistCount: UInt32

  /// The schema cookie, offset 40; it changes with the schema.
  public var schemaCookie: UInt32

  /// The schema format, offset 44: 1 to 4, and 0 in an empty database.
  public var schemaFormat: UInt32

  /// The suggested cache size, offset 48.
  public var defaultCacheSize: Int32

  /// The largest root page, offset 52; nonzero means auto-vacuum with pointer-map pages.
  public var largestRootPage: UInt32

  /// The text encoding as stored at offset 56.
  public var storedEncoding: UInt32

  /// The user version, offset 60.
  public var userVersion: Int32

  /// Whether auto-vacuum is incremental, offset 64: nonzero for yes.
  public var incrementalVacuum: UInt32

  /// The application id, offset 68.
  public var applicationID: UInt32

  /// Whether the reserved offsets 72 to 91 are zero.
  public var isExpansionZero: Bool

  /// The change counter that ``pageCount`` and ``sqliteVersion`` belong to, offset 92.
  public var versionValidFor: UInt32

  /// The last writer's SQLite version, offset 96, such as 3040001 for 3.40.1.
  public var sqliteVersion: UInt32

  /// Reads a header from page 1; nil for fewer than 100 bytes.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count >= DatabaseHeader.length else { return nil }
    func word(_ offset: Int) -> UInt32 { bytes.span.uint32(at: offset) ?? 0 }
    hasMagic = bytes.starts(with: DatabaseHeader.magic)
    storedPageSize = Int(bytes[16]) << 8 | Int(bytes[17])
    writeVersion = bytes[18]
    readVersion = bytes[19]
    reservedBytes = bytes[20]
    maximumPayloadFraction = bytes[21]
    minimumPayloadFraction = bytes[22]
    leafPayloadFraction = bytes[23]
    changeCounter = word(24)
    pageCount = word(28)
    firstFreelistTrunk = word(32)
    freelistCount = word(36)
    schemaCookie = word(40)
    schemaFormat = word(44)
    defaultCacheSize = Int32(bitPattern: word(48))
    largestRootPage = word(52)
    storedEncoding = word(56)
    userVersion = Int32(bitPattern: word(60))
    incrementalVacuum = word(64)
    applicationID = word(68)
    isExpansionZero = bytes[72..<92].allSatisfy { $0 == 0 }
    versionValidFor = word(92)
    sqliteVersion = word(96)
  }
}

extension DatabaseHeader {
  /// The page size in bytes; nil unless a power of two from 512 to 65536.
  public var pageSize: Int? {
    let size = storedPageSize == 1 ? 65536 : storedPageSize
    return DatabaseHeader.isPageSize(size) ? size : nil
  }

  /// The usable bytes of a page; nil if unknown or below 480.
  public var usableSize: Int? {
    guard let pageSize, pageSize - Int(reservedBytes) >= 480 else { return nil }
    return pageSize - Int(reservedBytes)
  }

  /// The text encoding; UTF-8 for 0 (not yet stored), nil for an unknown code.
  public var encoding: TextEncoding? { storedEncoding == 0 ? .utf8 : TextEncoding(rawValue: storedEncoding) }

  /// Whether ``pageCount`` was written with the last change.
  public var isPageCountValid: Bool { pageCount != 0 && versionValidFor == changeCounter }

  /// Whether constants are right and numbers consistent.
  ///
  /// A repeated pattern over the header satisfies ``isPageCountValid`` alone.
  public var isConsistent: Bool {
    guard hasUsualFractions, (1...2).contains(readVersion), (1...2).contains(writeVersion), schemaFormat <= 4,
      encoding != nil, isExpansionZero
    else { return false }
    return !isPageCountValid || freelistCount <= pageCount && firstFreelistTrunk <= pageCount
  }

  /// Whether the database has pointer-map pages.
  public var isAutoVacuum: Bool { largestRootPage != 0 }

  /// Whether the database is in WAL mode.
  public var usesWriteAheadLog: Bool { readVersion == 2 }

  /// Whether the payload fractions are right, a sign of a header without magic.
  public var hasUsualFractions: Bool {
    maximumPayloadFraction == 64 && minimumPayloadFraction == 32 && leafPayloadFraction == 32
  }

  /// The writer's version, such as `3.40.1`; nil if not stored.
  public var sqliteVersionName: String? {
    guard sqliteVersion != 0 else { return nil }
    return "\(sqliteVersion / 1_000_000).\(sqliteVersion / 1000 % 1000).\(sqliteVersion % 1000)"
  }

  /// Whether SQLite allows a page size.
  public static func isPageSize(_ size: Int) -> Bool { size >= 512 && size <= 65536 && size & (size - 1) == 0 }

  /// The oddities of the fields alone.
  public var findings: Findings {
    var findings = Findings()
    if !hasMagic { findings.note(.magicMissing, page: 1) }
    if pageSize == nil {
      findings.note(.pageSizeInvalid, page: 1, found: Int64(storedPageSize))
    } else if usableSize == nil {
      findings.note(.reservedBytesInvalid, page: 1, found: Int64(reservedBytes))
    }
    if !hasUsualFractions { findings.note(.payloadFractionsWrong, page: 1) }
    if readVersion == 0 || readVersion > 2 { findings.note(.readVersionUnknown, page: 1, found: Int64(readVersion)) }
    if writeVersion == 0 || writeVersion > 2 {
      findings.note(.writeVersionUnknown, page: 1, found: Int64(writeVersion))
    }
    if schemaFormat > 4 { findings.note(.schemaFormatUnknown, page: 1, found: Int64(schemaFormat)) }
    if encoding == nil { findings.note(.encodingUnknown, page: 1, found: Int64(storedEncoding)) }
    if !isExpansionZero { findings.note(.expansionNotZero, page: 1) }
    if incrementalVacuum != 0 && largestRootPage == 0 { findings.note(.vacuumFieldsContradict, page: 1) }
    return findings
  }
}
