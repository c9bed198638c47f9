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
