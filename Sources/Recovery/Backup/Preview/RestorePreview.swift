internal import StoreFiles

/// What restoring a backup would change: for each entity the records that would be added, changed and lost.
///
/// Records are told apart by their entities and primary keys; one is changed where a value of it is another, its save count
/// left aside.
package struct RestorePreview: Sendable, Hashable, Encodable {
  /// The records of an entity, or the rows of a table.
  package struct Entity: Sendable, Hashable, Encodable {
    /// The entity, or the table of a plain store.
    package var name: String

    /// The table.
    package var table: String

    /// Those that are in the backup only.
    package var added: Int64

    /// Those that are in both, with other values.
    package var changed: Int64

    /// Those that are in the present store only.
    package var lost: Int64

    /// Those that are in both and the same.
    package var unchanged: Int64
  }

  /// The pairs of a many-to-many relationship.
  package struct Pairs: Sendable, Hashable, Encodable {
    /// The join table.
    package var table: String

    /// Those that are in the backup only.
    package var added: Int64

    /// Those that are in the present store only.
    package var lost: Int64
  }

  /// What the present store is.
  package enum Present: String, Sendable, Hashable, Encodable {
    /// It was read whole.
    case sound

    /// It is damaged, and compared as far as its rows can be salvaged.
    case damaged

    /// There is none, so that everything would be added.
    case missing
  }

  /// What the present store is.
  package var present: Present

  /// The entities of both, by name.
  package var entities: [Entity]

  /// The join tables that both have with the same columns, by name.
  package var pairs: [Pairs]

  /// What could not be compared, in words.
  package var remarks: [String]

  /// Whether restoring would lose or change nothing.
  package var isHarmless: Bool {
    entities.allSatisfy { $0.lost == 0 && $0.changed == 0 } && pairs.allSatisfy { $0.lost == 0 }
  }

  /// Writes everything that would change, and `harmless`.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "present": present, "harmless": isHarmless, "entities": entities, "pairs": pairs, "remarks": remarks,
    ])
  }
}
