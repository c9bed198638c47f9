extension InspectorRoutes {
  /// The records of stores.
  mutating func addRecords(_: InspectorParts) {}
}
