print("lazaret")
