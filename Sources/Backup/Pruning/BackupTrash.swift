import Foundation
internal import Platform

/// The trash of a place.
///
/// A backup belongs to the section of its manifest, and is listed as whole only when all objects are there. The next
/// run finishes interrupted moves.
struct BackupTrash: Sendable {
  let place: any BackupPlace

  var surroundings = Surroundings.machine

  // MARK: Looking

  func backups() throws -> [TrashedBackup] {
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
    let read = try place.atOnce(records) { (id, object) throws -> TrashRecord? in
      guard object.bytes <= Int64(TrashRecord.limit) else { return nil }
      return TrashRecord(json: try place.read(object.name, in: .trash, at: 0, length: TrashRecord.limit), of: id)
    }
    for ((id, _), record) in zip(records, read) {
      found[id, default: TrashedBackup(id: id, objects: [])].record = record
    }
    return found.values.ordered { $0.id > $1.id }
  }

  // MARK: Dropping

  /// Drops a backup; the caller holds the lock of the place.
  ///
  /// The manifest goes first, which unlists the backup and lets another process finish.
  func drop(_ backup: StoredBackup, because reasons: [String]) throws {
    let record = TrashRecord(backup, date: surroundings.now(), reasons: reasons)
    try place.replace(TrashRecord.name(of: backup.id), with: try record.json(), in: .trash)
    for name in Self.manifestFirst(backup.objects, of: backup.id) { try place.move(name, from: .kept, to: .trash) }
  }

  /// The listing object comes first.
  private static func manifestFirst(_ objects: [BackupObject], of id: BackupIdentifier) -> [String] {
    let heads = BackupCatalog.heads(of: id)
    let names = objects.map(\.name)
    return names.filter { heads.contains($0) } + names.filter { !heads.contains($0) }
  }

  // MARK: Bringing back

  /// Moves a backup and its ancestors out of the trash; the caller holds the lock of the place.
  ///
  /// - Returns: the moved backups, oldest first.
  /// - Throws: `no-such-backup`, `backup-damaged` if parts are gone, `backup-name-taken`.
  func restore(_ id: BackupIdentifier) throws -> [BackupIdentifier] {
    let trashed = Dictionary(try backups().map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    guard trashed[id] != nil else {
      throw BackupError(
        .notFound, operation: "bring the backup back",
        detail: "no backup \(id) is in the trash of \(printable(place.location))",
        hint: "List what is there with: lazaret backup undelete")
    }
    let wanted = Set([id]).addingNeeded { trashed[$0]?.needs ?? [] }
    let backups = wanted.sorted().compactMap { trashed[$0] }
    try check(backups)
    // Ancestors first and manifests last, so that only whole backups are listed.
    for backup in backups {
      for name in Self.manifestFirst(backup.objects, of: backup.id).reversed() {
        try place.move(name, from: .trash, to: .kept)
      }
      try place.delete(TrashRecord.name(of: backup.id), in: .trash)
    }
    return backups.map(\.id)
  }

  private func check(_ backups: [TrashedBackup]) throws {
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

  /// Deletes a backup; the caller holds the lock of the place.
  ///
  /// The manifest goes first, which unlists it; the record goes last, so that the next run can continue.
  func remove(_ backup: TrashedBackup) throws {
    for name in Self.manifestFirst(backup.objects, of: backup.id) { try place.delete(name, in: .trash) }
    try place.delete(TrashRecord.name(of: backup.id), in: .trash)
  }

  /// Finishes interrupted moves; the caller holds the lock of the place.
  ///
  /// Only objects as in a record are moved.
  func finishInterrupted() throws {
    let kept = try place.list(.kept).sizes
    for backup in try backups() {
      guard let record = backup.record else { continue }
      let main = "\(backup.id)\(BackupManifest.File.Role.originalMain.suffix)"
      let note = "\(backup.id)\(BackupManifest.File.Role.originalOnlyHere.suffix)"
      if kept[main] != nil, kept[note] != nil {
        // All but its record was moved back, so no part may return. With more parts in the trash, it is another
        // original of the same second, and both stay.
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

  /// Returns whether the kept backup is that of the trash record.
  ///
  /// Without a manifest in the trash, it never moved.
  private func isSameManifest(of backup: TrashedBackup) throws -> Bool {
    guard let object = backup.manifestObject, object.bytes <= Int64(BackupManifest.limit) else { return true }
    let limit = BackupManifest.limit
    return try place.read(object.name, in: .kept, at: 0, length: limit)
      == place.read(object.name, in: .trash, at: 0, length: limit)
  }

  private func takeBack(_ backup: TrashedBackup, _ kept: [String: Int64]) throws {
    for object in backup.objects {
      if kept[object.name] == nil {
        try place.move(object.name, from: .trash, to: .kept)
      } else if kept[object.name] == object.bytes {
        // An interrupted move leaves a second link.
        try place.delete(object.name, in: .trash)
      }
    }
    try place.delete(TrashRecord.name(of: backup.id), in: .trash)
  }

  private func finishDropping(_ backup: TrashedBackup, _ record: TrashRecord, _ kept: [String: Int64]) throws {
    let there = backup.objects.sizes
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
  package var id: BackupIdentifier

  /// The record; without it, the backup stays in the trash until a user acts.
  package var record: TrashRecord?

  var manifest: BackupManifest?

  /// The objects in the trash, without its record.
  var objects: [BackupObject]

  /// Whether it can be moved back.
  package var isWhole: Bool {
    guard let record else { return manifest != nil }
    let names = Set(objects.map(\.name))
    return record.objects.allSatisfy { names.contains($0.name) }
  }

  /// The time of dropping, if known.
  var dropped: Timestamp? { record.flatMap { Timestamp($0.date) } }

  package var bytes: Int64 { objects.reduce(0) { $0 + $1.bytes } }

  var needs: [BackupIdentifier] {
    StoredBackup(id: id, manifest: manifest, proof: nil, objects: [], problems: []).needs
  }

  var hasNote: Bool { objects.contains { BackupCatalog.originalRole(of: $0.name, id) == .originalOnlyHere } }

  var manifestObject: BackupObject? { objects.first { $0.name == "\(id)\(BackupManifest.suffix)" } }
}

/// The record of a dropped backup, stored beside it as `<id>.dropped.json`.
package struct TrashRecord: Sendable, Hashable, Codable {
  struct Object: Sendable, Hashable, Codable {
    var name: String

    var bytes: Int64
  }

  /// Always `lazaret-dropped-backup`.
  var format = TrashRecord.formatName

  /// The version of the format: 1.
  var version = 1

  var id: BackupIdentifier

  package var date: String

  package var reasons: [String]

  var objects: [Object]

  var wasProvenGood: Bool

  static let formatName = "lazaret-dropped-backup"
  static let suffix = ".dropped.json"

  static let limit = 1 << 20

  init(_ backup: StoredBackup, date: Timestamp, reasons: [String]) {
    id = backup.id
    self.date = date.rfc3339
    self.reasons = reasons
    objects = backup.objects.map { Object(name: $0.name, bytes: $0.bytes) }
    wasProvenGood = backup.isProvenGood
  }

  init?(json bytes: [UInt8], of id: BackupIdentifier) {
    // Without a readable record the backup stays in the trash until a user acts.
    guard let record = try? JSONDecoder().decode(TrashRecord.self, from: Data(bytes)),
      record.format == Self.formatName, record.version == 1, record.id == id,
      record.objects.allSatisfy({ BackupCatalog.identifier(of: $0.name) == id })
    else { return nil }
    self = record
  }

  static func name(of id: BackupIdentifier) -> String { "\(id)\(suffix)" }

  func json() throws -> [UInt8] { try JSON.bytes(of: self, to: "drop backup \(id)") }
}
