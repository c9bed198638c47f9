import LazaretTesting

// The example of Documentation/LIBRARY.md for people's own tests, word for word: here it is compiled.

/// Whether stores of the first version arrive in the second one as they should.
func checkMigration(model path: FilePath, in folder: FilePath) throws -> [StoreDifference] {
  let bundle = try ModelBundle.load(path: path)
  guard let version = bundle.version(named: "V1") else { return [] }
  // A store of version 1, the same for the same seed.
  let generator = try StoreGenerator(version.model, options: .init(.edge, seed: 7, records: 50))
  let store = try generator.write(to: folder.appending("Store.sqlite"))
  // The same store at both versions, open side by side.
  let pair = try SideBySide(store.path, bundle: bundle, from: "V1", to: "V2")
  for car in try pair.after.records(of: "Car") where car.values["name"] == .null {
    print("car \(car.primaryKey) has no name any more")
  }
  return try pair.comparison().differences
}
