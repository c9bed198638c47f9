internal import PersistentStore

/// The generated records that a relationship can lead from or to, each with a position from 0.
struct RecordPool: Sendable {
  /// The records of one entity among them.
  struct Member: Sendable {
    let entity: EntityLayout
    let count: Int

    /// The position of its first record.
    let offset: Int

    /// The place of the entity among those of its hierarchy that have records, and their number: primary keys are given
    /// out in turn, so that the records of a hierarchy are mixed.
    let slot: Int
    let stride: Int

    func primaryKey(_ index: Int) -> Int64 { Int64(index * stride + slot + 1) }
  }

  let members: [Member]
  let total: Int
  private let places: [Int: Int]

  init(_ entries: [(entity: EntityLayout, count: Int, slot: Int, stride: Int)]) {
    var members: [Member] = []
    var offset = 0
    for entry in entries {
      members.append(
        Member(entity: entry.entity, count: entry.count, offset: offset, slot: entry.slot, stride: entry.stride))
      offset += entry.count
    }
    self.members = members
    total = offset
    places = Dictionary(
      members.enumerated().map { ($1.entity.number, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The record at a position, which must be below `total`.
  func record(at position: Int) -> (number: Int, key: Int64)? {
    var (low, high) = (0, members.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if members[middle].offset <= position { low = middle } else { high = middle }
    }
    guard members.indices.contains(low) else { return nil }
    // Members without records share their offset with the next one.
    while low + 1 < members.count, position >= members[low].offset + members[low].count { low += 1 }
    let member = members[low]
    return (member.entity.number, member.primaryKey(position - member.offset))
  }

  /// The position of a record of an entity; nil where the entity is not among these.
  func position(number: Int, index: Int) -> Int? { places[number].map { members[$0].offset + index } }
}
