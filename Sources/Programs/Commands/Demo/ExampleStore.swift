import GRDB
import StoreCoordination

/// A store with a few records, for the demonstration.
struct ExampleStore {
  let model: ManagedObjectModel

  /// How many vehicles it has.
  var vehicles = 200

  /// Creates the store and fills it, if it is the garage's.
  func create(at path: FilePath) throws {
    let uuid = Surroundings.machine.makeUUID().description
    let bytes = try StoreCreation(model: model, uuid: uuid, modelCache: try model.modelCache()).bytes()
    try FileSystem().writeAtomically(bytes, to: path, replacing: false)
    // The store above was made by this very layout; a model without these entities stays empty.
    guard let layout = try? StoreLayout(model), let car = layout.entity(named: "Car"),
      let motorbike = layout.entity(named: "Motorbike"), let owner = layout.entity(named: "Owner")
    else { return }
    let store = try PersistentStore(opening: path, model: model)
    try store.write { database in
      for number in 1...12 {
        try database.execute(
          sql: "INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT, ZNAME, ZID) VALUES (?, ?, 1, ?, randomblob(16))",
          arguments: [number, owner.number, "Owner \(number)"])
      }
      for number in 1...max(1, vehicles) {
        let isCar = number % 4 != 0
        try database.execute(
          sql: """
            INSERT INTO ZVEHICLE (Z_PK, Z_ENT, Z_OPT, ZOWNER, ZMAKER, ZPLATE, ZDOORS, ZHASSIDECAR)
            VALUES (?, ?, 1, ?, ?, ?, ?, ?)
            """,
          arguments: [
            number, isCar ? car.number : motorbike.number, number % 12 + 1, "Maker \(number % 7)",
            "GA \(1000 + number)", isCar ? 4 : nil, isCar ? nil : 0,
          ])
      }
      for (root, highest) in [("Owner", 12), ("Vehicle", vehicles)] {
        try database.execute(
          sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_NAME = ?", arguments: [highest, root])
      }
    }
    try store.close()
  }
}
