internal import PersistentStore

/// The differences found so far, up to a limit; all are counted.
struct DifferenceList {
  private(set) var differences: [StoreDifference] = []
  private(set) var count = 0
  let limit: Int
  let includesValues: Bool

  init(limit: Int, includesValues: Bool) {
    self.limit = max(0, limit)
    self.includesValues = includesValues
  }

  mutating func add(_ difference: StoreDifference) {
    count += 1
    if differences.count < limit { differences.append(difference) }
  }

  mutating func add(
    _ kind: StoreDifference.Kind, _ entity: String, _ key: Int64, _ property: String, first: RecordValue?,
    second: RecordValue?
  ) {
    add(
      StoreDifference(
        kind, entity: entity, primaryKey: key, property: property,
        first: includesValues ? first.map { "\($0)" } : nil, second: includesValues ? second.map { "\($0)" } : nil))
  }
}
