import Foundation
package import Platform

/// The trash of a place: backups that were dropped, and can be brought back until it is emptied.
///
/// A backup belongs to the section that its manifest is in. What a killed run left between the two is brought there by the
/// next one, so that a backup is always whole in one of them or on its way, and never listed as whole while it is not.
package struct BackupTrash: Sendable {
  /// The place.
  package let place: any BackupPlace

  private let surroundings: Surroundings

  /// The trash of a place.
  package init(of place: any BackupPlace, surroundings: Surroundings = .machine) {
    self.place = place
    self.surroundings = surroundings
  }

  // MARK: Looking

  /// The backups in the trash, newest first.
  package func backups() throws(BackupError) -> [TrashedBackup] {
    let catalog = try BackupCatalog(of: place, section: .trash)
    var found: [BackupIdentifier: TrashedBackup] = [:]
    for backup in catalog.backups {
      found[backup.id] = TrashedBackup(id: backup.id, manifest: backup.manifest, objects: backup.objects)
    }
    var records: [(id: BackupIdentifier, object: BackupObject)] = []
    for stray in catalog.strays where stray.name.hasSuffix(TrashRecord.suffix) {
      guard let id = BackupIdentifier(String(stray.name.dropLast(TrashRecord.suffix.count))) else { continue }
      guard found[id] != nil || !catalog.isOther(id) && place.owner?.unnamed.contains(id) ?? true else { continue }
      records.append((id, stray))
    }
    let place = place
    let read = try place.atOnce(records) { (id, object) throws(BackupError) -> TrashRecord? in
      guard object.bytes <= Int64(TrashRecord.limit) else { return nil }
      return TrashRecord(json: try place.read(object.name, in: .trash, at: 0, length: TrashRecord.limit), of: id)
    }
    for ((id, _), record) in zip(records, read) {
      found[id, default: TrashedBackup(id: id, objects: [])].record = record
    }
    return found.values.ordered { $0.id > $1.id }
  }

  // MARK: Dropping

  /// Moves a backup into the trash; the caller holds the lock of the place.
  ///
  /// The manifest goes first: from then on the backup is no longer listed as whole, and the process that finds it finishes the move.
  func drop(_ backup: StoredBackup, because reasons: [String]) throws(BackupError) {
    let record = TrashRecord(backup, date: surroundings.now(), reasons: reasons)
    try place.replace(TrashRecord.name(of: backup.id), with: try record.json(), in: .trash)
    for name in Self.manifestFirst(backup.objects, of: backup.id) {
      try place.move(name, from: .kept, to: .trash)
    }
  }

  /// The names of a backup's objects, the one that it is listed by before the others.
  private static func manifestFirst(_ objects: [BackupObject], of id: BackupIdentifier) -> [String] {
    // An original has no manifest; its main file is what it is listed by.
    let heads = ["\(id)\(BackupManifest.suffix)", "\(id)\(BackupManifest.File.Role.originalMain.suffix)"]
    let names = objects.map(\.name)
    return names.filter { heads.contains($0) } + names.filter { !heads.contains($0) }
  }

  // MARK: Bringing back

  /// Brings a backup back, with everything it cannot be restored without that is in the trash too; the caller holds the
  /// lock of the place.
  ///
  /// - Returns: what was brought back, the oldest first.
  /// - Throws: `no-such-backup` where it is not in the trash, `backup-damaged` where a part of it is gone already,
  ///   `backup-name-taken` where another backup has its name.
  func restore(_ id: BackupIdentifier) throws(BackupError) -> [BackupIdentifier] {
    let trashed = Dictionary(try backups().map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    guard trashed[id] != nil else {
      throw BackupError(
        .notFound, operation: "bring the backup back",
        detail: "no backup \(id) is in the trash of \(printable(place.location))",
        hint: "List what is there with: lazaret backup undelete")
    }
    var wanted: Set<BackupIdentifier> = [id]
    var waiting = [id]
    while let next = waiting.popLast() {
      for needed in trashed[next]?.needs ?? [] where trashed[needed] != nil && wanted.insert(needed).inserted {
        waiting.append(needed)
      }
    }
    let backups = wanted.sorted().compactMap { trashed[$0] }
    try check(backups)
    // Those that others need come first, and of each the manifest last: it is listed when it is whole.
    for backup in backups {
      for name in Self.manifestFirst(backup.objects, of: backup.id).reversed() {
        try place.move(name, from: .trash, to: .kept)
      }
      try place.delete(TrashRecord.name(of: backup.id), in: .trash)
    }
    return backups.map(\.id)
  }

  private func check(_ backups: [TrashedBackup]) throws(BackupError) {
    for backup in backups where !backup.isWhole {
      throw BackupError(
        .damaged, operation: "bring the backup back",
        detail: "a part of backup \(backup.id) is gone from the trash already", hint: "Restore another backup.")
    }
    let taken = Set(try place.list(.kept).map(\.name))
    for object in backups.flatMap(\.objects) where taken.contains(object.name) {
      throw BackupError(
        .nameTaken, operation: "bring the backup back",
        detail: "another backup of the same second has the name \(object.name) now",
        hint: "Move one of the two elsewhere by hand.")
    }
  }

  // MARK: Removing

  /// Removes a backup from the trash for good; the caller holds the lock of the place.
  ///
  /// The manifest goes first, so that nothing that is half gone is taken for a backup, and the record last, so that the
  /// rest goes too, should this be cut short.
  func remove(_ backup: TrashedBackup) throws(BackupError) {
    for name in Self.manifestFirst(backup.objects, of: backup.id) { try place.delete(name, in: .trash) }
    try place.delete(TrashRecord.name(of: backup.id), in: .trash)
  }
}

extension BackupTrash {
  /// Brings what an earlier run left between the sections to the one it belongs to; the caller holds the lock of the place.
  ///
  /// Only objects that the record of a backup names, and that have the sizes it says, are ever moved.
  func finishInterrupted() throws(BackupError) {
    let kept = Dictionary(
      try place.list(.kept).map { ($0.name, $0.bytes) }, uniquingKeysWith: { first, _ in first })
    for backup in try backups() {
      guard let record = backup.record else { continue }
      let main = "\(backup.id)\(BackupManifest.File.Role.originalMain.suffix)"
      let note = "\(backup.id)\(BackupManifest.File.Role.originalOnlyHere.suffix)"
      if kept[main] != nil, kept[note] != nil {
        // It was brought back, all but its record, and no part of it may go to the trash again. Where the trash has parts
        // that are not among the kept ones it is another original of the same second, and both stay where they are.
        if backup.objects.allSatisfy({ kept[$0.name] == $0.bytes }) { try takeBack(backup, kept) }
        continue
      }
      let manifest = "\(backup.id)\(BackupManifest.suffix)"
      let hadManifest = record.objects.contains { $0.name == manifest }
      if hadManifest, kept[manifest] != nil {
        guard try isSameManifest(of: backup) else { continue }
        try takeBack(backup, kept)
      } else if backup.manifestObject != nil || !hadManifest {
        try finishDropping(backup, record, kept)
      }
    }
  }

  /// Whether the backup that is kept under this name is the one that the record in the trash is about.
  ///
  /// Where the trash has no manifest it never left, and whatever else did is named by the record.
  private func isSameManifest(of backup: TrashedBackup) throws(BackupError) -> Bool {
    guard let object = backup.manifestObject, object.bytes <= Int64(BackupManifest.limit) else { return true }
    let limit = BackupManifest.limit
    return try place.read(object.name, in: .kept, at: 0, length: limit)
      == place.read(object.name, in: .trash, at: 0, length: limit)
  }

  /// Everything that went into the trash already comes back.
  private func takeBack(_ backup: TrashedBackup, _ kept: [String: Int64]) throws(BackupError) {
    for object in backup.objects {
      if kept[object.name] == nil {
        try place.move(object.name, from: .trash, to: .kept)
      } else if kept[object.name] == object.bytes {
        // A second name of the same object: the move was cut short between the two.
        try place.delete(object.name, in: .trash)
      }
    }
    try place.delete(TrashRecord.name(of: backup.id), in: .trash)
  }

  /// Everything that is still among the kept ones goes into the trash.
  private func finishDropping(
    _ backup: TrashedBackup, _ record: TrashRecord, _ kept: [String: Int64]
  ) throws(BackupError) {
    let there = Dictionary(backup.objects.map { ($0.name, $0.bytes) }, uniquingKeysWith: { first, _ in first })
    for object in record.objects where kept[object.name] == object.bytes {
      if there[object.name] == nil {
        try place.move(object.name, from: .kept, to: .trash)
      } else if there[object.name] == object.bytes {
        try place.delete(object.name, in: .kept)
      }
    }
  }
}

/// A backup in the trash.
package struct TrashedBackup: Sendable, Hashable {
  /// What it is called.
  package var id: BackupIdentifier

  /// When and why it was dropped; nil where its record is missing or cannot be read, when it stays until a person looks.
  package var record: TrashRecord?

  /// What its manifest says; nil where there is none, or none that can be read.
  package var manifest: BackupManifest?

  /// What of it is in the trash, its record left out.
  package var objects: [BackupObject]

  /// Whether all of it is there, so that it can be brought back.
  package var isWhole: Bool {
    guard let record else { return manifest != nil }
    let names = Set(objects.map(\.name))
    return record.objects.allSatisfy { names.contains($0.name) }
  }

  /// When it was dropped; nil where that is not known.
  package var dropped: Timestamp? { record.flatMap { Timestamp($0.date) } }

  /// The size of what is there, in bytes.
  package var bytes: Int64 { objects.reduce(0) { $0 + $1.bytes } }

  /// The backups that it cannot be restored without.
  var needs: [BackupIdentifier] {
    StoredBackup(id: id, manifest: manifest, proof: nil, objects: [], problems: []).needs
  }

  /// Whether the note of the records that are only in it lies with it.
  var hasNote: Bool {
    objects.contains { BackupCatalog.originalRole(of: $0.name, id) == .originalOnlyHere }
  }

  /// The manifest, where it is in the trash.
  var manifestObject: BackupObject? { objects.first { $0.name == "\(id)\(BackupManifest.suffix)" } }
}

/// What is written into the trash when a backup is dropped: when, why, and which objects it consists of.
///
/// Kept as `<id>.dropped.json` in the trash for as long as the backup is there.
package struct TrashRecord: Sendable, Hashable, Codable {
  /// An object of the backup.
  package struct Object: Sendable, Hashable, Codable {
    /// Its name.
    package var name: String

    /// Its size in bytes.
    package var bytes: Int64
  }

  /// The name of the format: always `lazaret-dropped-backup`.
  package var format: String

  /// The version of the format: 1.
  package var version: Int

  /// The backup.
  package var id: BackupIdentifier

  /// When it was dropped, in RFC 3339.
  package var date: String

  /// Why it was dropped, in words.
  package var reasons: [String]

  /// Its objects.
  package var objects: [Object]

  /// Whether it was proven good when it was dropped.
  package var wasProvenGood: Bool

  static let formatName = "lazaret-dropped-backup"
  static let suffix = ".dropped.json"

  /// The largest record that is read, in bytes.
  static let limit = 1 << 20

  init(_ backup: StoredBackup, date: Timestamp, reasons: [String]) {
    format = Self.formatName
    version = 1
    id = backup.id
    self.date = date.rfc3339
    self.reasons = reasons
    objects = backup.objects.map { Object(name: $0.name, bytes: $0.bytes) }
    wasProvenGood = backup.isProvenGood
  }

  /// Reads a record; nil where it is none.
  init?(json bytes: [UInt8], of id: BackupIdentifier) {
    // A record that cannot be read is as good as none: its backup then stays in the trash until a person looks.
    guard let record = try? JSONDecoder().decode(TrashRecord.self, from: Data(bytes)),
      record.format == Self.formatName, record.version == 1, record.id == id,
      record.objects.allSatisfy({ BackupCatalog.identifier(of: $0.name) == id })
    else { return nil }
    self = record
  }

  /// The name of the record of a backup.
  static func name(of id: BackupIdentifier) -> String { "\(id)\(suffix)" }

  func json() throws(BackupError) -> [UInt8] { try BackupError.json(self, to: "drop backup \(id)") }
}
