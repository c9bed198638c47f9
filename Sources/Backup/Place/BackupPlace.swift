package import Platform
package import SystemPackage

/// The storage of one store's backups: a folder, or perhaps later a prefix in object storage.
///
/// An object gets its name only when complete and durable, and never changes, except by `replace`. Names are single
/// components of ASCII letters, digits, `.` and `-`.
package protocol BackupPlace: Sendable {
  var location: String { get }

  /// The store of the backups; nil if all objects belong to one.
  var owner: PlaceOwner? { get }

  /// The number of threads for reading many small objects; several if reads wait for replies.
  var readsAtOnce: Int { get }

  /// Lists the finished objects of a section by name.
  func list(_ section: BackupSection) throws -> [BackupObject]

  func contains(_ name: String, in section: BackupSection) throws -> Bool

  /// Reads a range, up to the end of the object.
  ///
  /// - Throws: `file-not-found`, or errors of the place.
  func read(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws -> [UInt8]

  /// Starts a new object; its `commit` fails if the name is taken.
  func begin(_ name: String) throws -> any BackupUpload

  /// Writes or replaces a small object atomically.
  func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws

  /// Moves an object; fails if the name is taken.
  func move(_ name: String, from: BackupSection, to: BackupSection) throws

  func delete(_ name: String, in section: BackupSection) throws

  /// Reads a range with altered bytes of an encrypted file, which a digest must then verify.
  func readUnproven(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws -> [UInt8]

  func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws -> Bool

  /// Returns the outer manifest of an encrypted backup, and the place of its files.
  func label(of id: BackupIdentifier) throws -> (place: any BackupPlace, manifest: BackupManifest)?

  /// Lists kept objects being written or abandoned.
  func unfinished() throws -> [String]

  /// Deletes the objects abandoned by ended processes; the caller holds the lock.
  func removeUnfinished() throws

  /// Notes the store that is backed up here, unless that would reveal it.
  ///
  /// - Throws: `backup-of-other-store` if the place is another store's.
  func claim(for store: FilePath, isEncrypted: Bool, in fileSystem: FileSystem) throws

  /// Acquires the lock for changes; it lasts as long as the value.
  func lock() throws -> any BackupPlaceLock
}

extension BackupPlace {
  package func readUnproven(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws -> [UInt8] { try read(name, in: section, at: offset, length: length) }

  /// Reads a range; nil if the object is missing.
  func readIfThere(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws -> [UInt8]? {
    try unlessMissing { try read(name, in: section, at: offset, length: length) }
  }

  package func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws -> Bool {
    // Looked up by name, as listings grow with the backups.
    try BackupManifest.File.Role.suffixes.contains { suffix in
      try suffix.hasSuffix(BackupManifest.Encryption.fileEnding) && contains("\(id)\(suffix)", in: section)
    }
  }

  /// Replaces file names in a message by the stored names.
  package func named(_ words: String, of id: BackupIdentifier, in section: BackupSection) throws -> String {
    let names = BackupManifest.File.Role.suffixes.map { "\(id)\($0)" }
      .filter { words.contains($0) && SealedPlace.sealedName(of: $0) != nil }
    guard !names.isEmpty, try isSealed(id, in: section) else { return words }
    return names.reduce(words) { words, name in
      guard let sealed = SealedPlace.sealedName(of: name), !words.contains(sealed) else { return words }
      return words.replacing(name, with: sealed)
    }
  }

  /// Replaces file names in the messages of problems.
  func named<Problem>(
    _ problems: [Problem], _ words: WritableKeyPath<Problem, String>, of id: BackupIdentifier, in section: BackupSection
  ) throws -> [Problem] {
    try problems.map { problem in
      var problem = problem
      problem[keyPath: words] = try named(problem[keyPath: words], of: id, in: section)
      return problem
    }
  }

  /// The name of a backup's file as it lies on the disk: with `.age` where the backup is encrypted.
  func nameOnDisk(_ file: String, in section: BackupSection) throws -> String {
    guard let id = BackupCatalog.identifier(of: file) else { return file }
    return try named(file, of: id, in: section)
  }

  package func label(of id: BackupIdentifier) throws -> (place: any BackupPlace, manifest: BackupManifest)? { nil }

  /// The owner of a folder is noted by ``BackupPlaces``.
  package func claim(for store: FilePath, isEncrypted: Bool, in fileSystem: FileSystem) throws {}

  /// Unfinished objects are invisible.
  package func unfinished() throws -> [String] { [] }

  package func contains(_ name: String, in section: BackupSection) throws -> Bool {
    try list(section).contains { $0.name == name }
  }

  package var owner: PlaceOwner? { nil }

  /// A folder replies at once, so apps need no threads.
  package var readsAtOnce: Int { 1 }

  /// Processes items on several threads; returns the results in order.
  ///
  /// - Throws: the error of the first failed item.
  func atOnce<Item: Sendable, Outcome: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws -> Outcome
  ) throws -> [Outcome] {
    let parts = max(1, min(readsAtOnce, items.count))
    // With consecutive items, the first failed part has the first failed item.
    let works = (0..<parts).map { items[(items.count * $0 / parts)..<(items.count * ($0 + 1) / parts)] }
    return try concurrently(works) { work in
      var outcomes: [Outcome] = []
      for item in work { outcomes.append(try body(item)) }
      return outcomes
    }.flatMap(\.self)
  }
}

/// A part of a place.
package enum BackupSection: String, Sendable, Hashable, CaseIterable {
  /// The backups available for restoring.
  case kept

  /// The dropped backups, until deleted.
  case trash
}

package struct BackupObject: Sendable, Hashable {
  package var name: String

  package var bytes: Int64

  package init(name: String, bytes: Int64) {
    self.name = name
    self.bytes = bytes
  }
}

extension [BackupObject] {
  /// The sizes by name.
  var sizes: [String: Int64] { Dictionary(map { ($0.name, $0.bytes) }) { first, _ in first } }
}

/// An object being written by one thread at a time; it deletes itself unless committed.
package protocol BackupUpload: AnyObject, Sendable {
  var name: String { get }

  func append(_ bytes: ArraySlice<UInt8>) throws

  /// Makes the bytes durable before the object is named.
  func synchronize() throws

  /// Names the durable object.
  func commit() throws
}

/// The lock of a place, as long as the value lives.
package protocol BackupPlaceLock: AnyObject, Sendable {}
