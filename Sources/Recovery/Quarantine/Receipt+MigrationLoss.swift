extension Receipt.Salvage {
  /// What the migration of a salvaged store left out, because the app's version has no place for it.
  package struct MigrationLoss: Sendable, Hashable, Codable {
    /// The entity, of the version that was migrated.
    package var entity: String

    /// The property; nil where it is about whole records.
    package var property: String?

    /// The values or records concerned; nil where that is not known.
    package var count: Int64?

    /// What it is, in one sentence without a full stop.
    package var text: String

    /// Something that a migration left out.
    package init(entity: String, property: String?, count: Int64?, text: String) {
      self.entity = entity
      self.property = property
      self.count = count
      self.text = text
    }
  }
}
