public import Foundation
internal import StoreCoordination

/// The preview of the modules below.
typealias PreviewBelow = RestorePreview

extension StoreBackups {
  /// A backup of a store.
  public struct Backup: Sendable, Identifiable {
    /// An entity that has less than half of the records that it had in the backup before.
    public struct Fall: Sendable, Hashable {
      /// The entity, or the table where no entity is known.
      public let entity: String

      /// How many records it had.
      public let before: Int64

      /// How many it has.
      public let after: Int64
    }

    /// How a proof has ended.
    public struct Proof: Sendable, Hashable {
      /// Whether all that was looked at is right: its files, read back after it was taken, or also the store that it restores to.
      public let isProven: Bool

      /// Whether it could not be told, because of the surroundings.
      public let isInconclusive: Bool

      /// What is wrong, each in a plain sentence.
      public let problems: [String]

      /// A proof of the modules below.
      init(_ proof: BackupProof) {
        isProven = proof.result == .proven && !proof.isOfEvidence
        isInconclusive = proof.result == .inconclusive
        problems = proof.problems.map(\.words)
      }
    }

    /// What it is called.
    public let id: String

    /// When it was taken.
    public let date: Date

    /// Its size in bytes.
    public let bytes: Int64

    /// The words to find it by.
    public let tags: [String]

    /// Whether nothing of it is lacking, as far as names, sizes and manifests tell.
    public let isWhole: Bool

    /// Whether it is of a store that was damaged, and kept apart from the good ones.
    public let isApart: Bool

    /// Whether it is whole, of a sound store, and was proven when last looked at.
    public let isProvenGood: Bool

    /// Whether it is encrypted.
    public let isEncrypted: Bool

    /// The version of the model that the store was of; nil where not known.
    public let modelVersion: String?

    /// The records of each entity; empty where they were not counted.
    public let records: [String: Int64]

    /// The entities that have less than half of the records they had before.
    public let falls: [Fall]

    /// How many records of entities that a migration removed are in it alone, by entity.
    public let onlyHere: [String: Int64]

    /// Why it is not whole, each in a plain sentence.
    public let problems: [String]

    /// The last proof; nil where there was none.
    public let proof: Proof?

    let identifier: BackupIdentifier
    let place: any BackupPlace

    /// A backup of the modules below.
    init(_ backup: StoredBackup, in place: any BackupPlace) {
      let manifest = backup.manifest
      id = backup.id.description
      date = Date(backup.id.date)
      bytes = backup.bytes
      tags = manifest?.tags ?? []
      isWhole = backup.isWhole
      isApart = backup.isApart
      isProvenGood = backup.isProvenGood
      isEncrypted = manifest?.isLocked == true
      modelVersion = manifest?.model?.version
      let counts = manifest?.entities?.compactMap { entity in entity.rows.map { (entity.name, $0) } } ?? []
      records = Dictionary(counts) { $0 + $1 }
      falls = manifest?.falls?.map { Fall(entity: $0.name, before: $0.before, after: $0.after) } ?? []
      onlyHere = Dictionary(backup.onlyHere?.entities.map { ($0.name, $0.rows) } ?? []) { $0 + $1 }
      problems = backup.problems.map(\.words)
      proof = backup.proof.map(Proof.init)
      identifier = backup.id
      self.place = place
    }
  }

  /// What restoring a backup over a store would change.
  public struct RestorePreview: Sendable, Hashable {
    /// The records of an entity.
    public struct Entity: Sendable, Hashable {
      /// What it is called.
      public let name: String

      /// Those that are in the backup only.
      public let added: Int64

      /// Those that differ.
      public let changed: Int64

      /// Those that are in the present store only.
      public let lost: Int64

      /// Those that are the same.
      public let unchanged: Int64
    }

    /// The pairs of a many-to-many relationship.
    public struct Pairs: Sendable, Hashable {
      /// The relationship, such as `Port.ships and Ship.ports`; its table where no model that is known names it.
      public let name: String

      /// Those that are in the backup only.
      public let added: Int64

      /// Those that are at another place of an order.
      public let changed: Int64

      /// Those that are in the present store only.
      public let lost: Int64
    }

    /// The large values in files of their own.
    public struct LargeValues: Sendable, Hashable {
      /// Those whose files the backup alone has.
      public let added: Int64

      /// Those whose files have another content.
      public let changed: Int64

      /// Those whose files the present store alone has.
      public let lost: Int64
    }

    /// The entities of both.
    public let entities: [Entity]

    /// The many-to-many relationships of both, whose pairs are no records of their own.
    public let pairs: [Pairs]

    /// The large values in files of their own that records of the backup refer to.
    public let largeValues: LargeValues

    /// Whether nothing that is in the present store would change or go; false where not everything could be compared.
    public let isHarmless: Bool

    /// What would change in the schema, in words: the model version, tables, columns.
    public let schemaChanges: [String]

    /// What would change in large values that have files of their own, in words.
    public let valueChanges: [String]

    /// What could not be compared, in words.
    public let remarks: [String]

    /// A preview of the modules below.
    init(_ preview: PreviewBelow) {
      entities = preview.entities.map {
        Entity(name: $0.name, added: $0.added, changed: $0.changed, lost: $0.lost, unchanged: $0.unchanged)
      }
      pairs = preview.pairs.map { Pairs(name: $0.words, added: $0.added, changed: $0.changed, lost: $0.lost) }
      largeValues = LargeValues(
        added: preview.values.added, changed: preview.values.changed, lost: preview.values.lost)
      isHarmless = preview.isHarmless
      schemaChanges = preview.schemaWords
      valueChanges = preview.valueWords
      remarks = preview.remarks
    }
  }

  /// What a restore did.
  public struct Restored: Sendable, Hashable {
    /// What the backup that was restored is called.
    public let backup: String

    /// Whether everything in it was restored, and no large value that its records refer to is lost.
    public let isComplete: Bool

    /// Why the restored store is not sound, in a plain sentence; nil where it is, or nothing tells.
    ///
    /// The store was not when it was backed up, and is as it was then: ``Backup/isApart`` is true of such a backup. The next
    /// opening examines it like any other store, and the policy says whether it is salvaged.
    public let damage: String?

    /// The store that was there before, in quarantine; nil where there was none.
    public let quarantined: URL?

    /// What the backup of it that was taken before is called; nil where none was.
    public let earlierBackup: String?

    /// Why newer backups were not restored, each in a plain sentence.
    public let passedOver: [String]

    /// What the modules below did.
    init(_ restored: Backups.Restored) {
      backup = restored.report.id.description
      isComplete = restored.report.isComplete
      damage = restored.damage?.words
      quarantined = restored.quarantined.map { URL(file: $0.files.main) }
      earlierBackup = restored.backup?.id.description
      passedOver = restored.passedOver.map { "\($0.id) \($0.words)." }
    }
  }
}
