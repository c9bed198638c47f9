internal import Platform

/// Where the backups of one store are kept: a folder today, a prefix in object storage some day.
///
/// An object gets its name only when it is whole and as durable as the place can make it, and is never changed afterwards,
/// apart from the small ones that `replace` writes. Names are single components of ASCII letters, digits, `.` and `-`.
package protocol BackupPlace: Sendable {
  /// Where it is, for people.
  var location: String { get }

  /// The store whose backups are meant; nil where all that lies there is of one.
  var owner: PlaceOwner? { get }

  /// How many threads read it at once where many small objects are read: several where each waits for an answer.
  var readsAtOnce: Int { get }

  /// The objects of a section, by name; what is still being written is not among them.
  func list(_ section: BackupSection) throws(BackupError) -> [BackupObject]

  /// Whether an object of that name is there.
  func contains(_ name: String, in section: BackupSection) throws(BackupError) -> Bool

  /// The bytes of a range, cut off at the end of the object.
  ///
  /// - Throws: `file-not-found` where there is no such object, or what the place says.
  func read(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws(BackupError) -> [UInt8]

  /// Begins a new object; it gets its name by `commit`, which fails where the name is taken.
  func begin(_ name: String) throws(BackupError) -> any BackupUpload

  /// Writes a small object at once, in place of one that has its name.
  func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws(BackupError)

  /// Moves an object into another section; fails where the name is taken there.
  func move(_ name: String, from: BackupSection, to: BackupSection) throws(BackupError)

  /// Removes an object; no error where there is none.
  func delete(_ name: String, in section: BackupSection) throws(BackupError)

  /// The bytes of a range, those of an encrypted file included that were altered: only for what a digest proves.
  func readUnproven(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws(BackupError) -> [UInt8]

  /// Whether a backup is encrypted.
  func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws(BackupError) -> Bool

  /// The manifest outside of an encrypted backup, and the place in which its files lie as that says; nil for any other.
  func label(of id: BackupIdentifier) throws(BackupError) -> (place: any BackupPlace, manifest: BackupManifest)?

  /// The names of the objects of the kept section that are being written, or were when a process ended.
  func unfinished() throws(BackupError) -> [String]

  /// Removes what processes that are gone were writing.
  ///
  /// The caller holds the lock.
  func removeUnfinished() throws(BackupError)

  /// Takes the lock that a process holds while it changes the place; it is held as long as the value lives.
  func lock() throws(BackupError) -> any BackupPlaceLock
}

extension BackupPlace {
  /// What is read in any case.
  package func readUnproven(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int
  ) throws(BackupError) -> [UInt8] { try read(name, in: section, at: offset, length: length) }

  /// Whether a file of it lies there encrypted.
  package func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws(BackupError) -> Bool {
    // Asked for by name: a listing takes longer with each backup that lies beside it.
    for suffix in BackupManifest.File.Role.suffixes where suffix.hasSuffix(BackupManifest.Encryption.fileEnding) {
      if try contains("\(id)\(suffix)", in: section) { return true }
    }
    return false
  }

  /// Words about a backup, with the names that its files have as they lie there.
  package func named(_ words: String, of id: BackupIdentifier, in section: BackupSection) throws(BackupError) -> String
  {
    let suffixes = BackupManifest.File.Role.suffixes + [BackupManifest.suffix]
    let names = suffixes.map { "\(id)\($0)" }.filter { words.contains($0) && SealedPlace.sealedName(of: $0) != nil }
    guard !names.isEmpty, try isSealed(id, in: section) else { return words }
    return names.reduce(words) { words, name in
      guard let sealed = SealedPlace.sealedName(of: name), !words.contains(sealed) else { return words }
      return words.replacing(name, with: sealed)
    }
  }

  /// None.
  package func label(
    of id: BackupIdentifier
  ) throws(BackupError) -> (place: any BackupPlace, manifest: BackupManifest)? { nil }

  /// None: what is being written cannot be seen.
  package func unfinished() throws(BackupError) -> [String] { [] }

  /// Whether the list has an object of that name.
  package func contains(_ name: String, in section: BackupSection) throws(BackupError) -> Bool {
    try list(section).contains { $0.name == name }
  }

  /// No store in particular.
  package var owner: PlaceOwner? { nil }
}

/// A part of a place.
package enum BackupSection: String, Sendable, Hashable, CaseIterable {
  /// The backups that are there to be restored.
  case kept

  /// The backups that were dropped and are not gone yet.
  case trash
}

/// What a place says of an object.
package struct BackupObject: Sendable, Hashable {
  /// The name.
  package var name: String

  /// The length in bytes.
  package var bytes: Int64

  /// An object.
  package init(name: String, bytes: Int64) {
    self.name = name
    self.bytes = bytes
  }
}

/// An object that is being written, by one thread at a time.
///
/// It removes itself where it ends without `commit`.
package protocol BackupUpload: AnyObject, Sendable {
  /// The name that it will get.
  var name: String { get }

  func append(_ bytes: ArraySlice<UInt8>) throws(BackupError)

  /// Makes what was appended durable, without giving it its name yet.
  func finish() throws(BackupError)

  /// Gives the object its name; it is whole and durable then.
  func commit() throws(BackupError)

  func abandon()
}

/// The lock of a place, held as long as the value lives.
package protocol BackupPlaceLock: AnyObject, Sendable {}

extension BackupPlace {
  /// One: a folder answers at once, and an app that looks at its backups needs no threads for it.
  package var readsAtOnce: Int { 1 }

  /// Does something with each of several things that lie here, as many at once as the place is read, and gives what came of them
  /// in their order.
  ///
  /// - Throws: what the first of them that failed threw, in their order.
  func atOnce<Item: Sendable, Outcome: Sendable>(
    _ items: [Item], _ body: @escaping @Sendable (Item) throws(BackupError) -> Outcome
  ) throws(BackupError) -> [Outcome] {
    let parts = max(1, min(readsAtOnce, items.count))
    // Neighbours stay together, so that the first part that fails has the first thing that failed.
    let works = (0..<parts).map { items[(items.count * $0 / parts)..<(items.count * ($0 + 1) / parts)] }
    return try concurrently(works) { (work) throws(BackupError) in
      var outcomes: [Outcome] = []
      for item in work { outcomes.append(try body(item)) }
      return outcomes
    }.flatMap(\.self)
  }
}
