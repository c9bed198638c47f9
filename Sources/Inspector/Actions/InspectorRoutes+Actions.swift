extension InspectorRoutes {
  /// What can be done.
  mutating func addActions(_: InspectorParts) {}
}
