extension InspectorRoutes {
  /// The models that were given.
  mutating func addModels(_: InspectorParts) {}
}
