plugins {
    kotlin("jvm") version "2.2.0"
}

group = "{{ package.flat }}"
version = "0.1.0"

repositories {
    mavenCentral()
}

kotlin {
    jvmToolchain(17)
}
